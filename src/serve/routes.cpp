#include "serve/routes.hpp"

#include <array>

namespace thalweg::serve {
namespace {

struct Entry {
  std::string_view path;
  Route route;
};

constexpr Route kChat{Endpoint::chat, "chat_completions", "POST"};
constexpr Route kResponses{Endpoint::responses, "responses", "POST"};
constexpr Route kStored{Endpoint::stored_response, "stored_response", "GET", ErrorShape::openai, false, true};
constexpr Route kMessages{Endpoint::messages, "messages", "POST", ErrorShape::anthropic};
constexpr Route kCount{Endpoint::count_tokens, "count_tokens", "POST", ErrorShape::anthropic};
constexpr Route kCompletions{Endpoint::completions, "completions", "POST"};
constexpr Route kModels{Endpoint::models, "models", "GET"};

constexpr std::array kRoutes = {
    Entry{"/v1/chat/completions", kChat},
    Entry{"/chat/completions", kChat},
    Entry{"/v1/responses", kResponses},
    Entry{"/responses", kResponses},
    Entry{"/v1/messages", kMessages},
    Entry{"/anthropic/v1/messages", kMessages},
    Entry{"/anthropic/messages", kMessages},
    Entry{"/v1/messages/count_tokens", kCount},
    Entry{"/anthropic/v1/messages/count_tokens", kCount},
    Entry{"/anthropic/messages/count_tokens", kCount},
    Entry{"/v1/completions", kCompletions},
    Entry{"/beta/completions", kCompletions},
    Entry{"/v1/models", kModels},
    Entry{"/models", kModels},
    Entry{"/tokenize", {Endpoint::tokenize, "tokenize", "POST"}},
    Entry{"/detokenize", {Endpoint::detokenize, "detokenize", "POST"}},
    Entry{"/health", {Endpoint::health, "health", "GET", ErrorShape::openai, true}},
    Entry{"/ready", {Endpoint::ready, "ready", "GET", ErrorShape::openai, true}},
    Entry{"/metrics", {Endpoint::metrics, "metrics", "GET"}},
    Entry{"/version", {Endpoint::version, "version", "GET"}},
    Entry{"/user/balance", {Endpoint::balance, "balance", "GET"}},
    Entry{"/", {Endpoint::page, "page", "GET", ErrorShape::openai, true}},
};

// Paths that end in a name.
constexpr std::array kFolders = {
    Entry{"/v1/models/", kModels},
    Entry{"/models/", kModels},
    Entry{"/v1/responses/", kStored},
    Entry{"/responses/", kStored},
};

}  // namespace

bool Route::allows(std::string_view asked) const {
  return asked == method || (asked == "HEAD" && method == "GET") || (asked == "DELETE" && deletes);
}

std::string Route::methods() const {
  std::string list = method == "GET" ? "GET, HEAD" : std::string(method);
  if (deletes) list += ", DELETE";
  return list;
}

std::string_view path_of(std::string_view target) {
  return target.substr(0, target.find('?'));
}

std::optional<Route> find_route(std::string_view path) {
  for (const Entry& entry : kRoutes) {
    if (entry.path == path) return entry.route;
  }
  for (const Entry& entry : kFolders) {
    if (path.size() > entry.path.size() && path.starts_with(entry.path)) return entry.route;
  }
  return std::nullopt;
}

}  // namespace thalweg::serve
