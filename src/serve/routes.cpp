#include "serve/routes.hpp"

#include <array>

namespace thalweg::serve {
namespace {

constexpr Route kChat{Endpoint::chat, "chat_completions", "POST"};
constexpr Route kResponses{Endpoint::responses, "responses", "POST"};
constexpr Route kStored{Endpoint::stored_response, "stored_response", "GET", ErrorShape::openai, false, true};
constexpr Route kMessages{Endpoint::messages, "messages", "POST", ErrorShape::anthropic};
constexpr Route kCount{Endpoint::count_tokens, "count_tokens", "POST", ErrorShape::anthropic};
constexpr Route kCompletions{Endpoint::completions, "completions", "POST"};
constexpr Route kModels{Endpoint::models, "models", "GET"};

constexpr std::array kRoutes = {
    PathRoute{"/v1/chat/completions", kChat},
    PathRoute{"/chat/completions", kChat},
    PathRoute{"/v1/responses", kResponses},
    PathRoute{"/responses", kResponses},
    PathRoute{"/v1/messages", kMessages},
    PathRoute{"/anthropic/v1/messages", kMessages},
    PathRoute{"/anthropic/messages", kMessages},
    PathRoute{"/v1/messages/count_tokens", kCount},
    PathRoute{"/anthropic/v1/messages/count_tokens", kCount},
    PathRoute{"/anthropic/messages/count_tokens", kCount},
    PathRoute{"/v1/completions", kCompletions},
    PathRoute{"/beta/completions", kCompletions},
    PathRoute{"/v1/models", kModels},
    PathRoute{"/models", kModels},
    PathRoute{"/tokenize", {Endpoint::tokenize, "tokenize", "POST"}},
    PathRoute{"/detokenize", {Endpoint::detokenize, "detokenize", "POST"}},
    PathRoute{"/health", {Endpoint::health, "health", "GET", ErrorShape::openai, true}},
    PathRoute{"/ready", {Endpoint::ready, "ready", "GET", ErrorShape::openai, true}},
    PathRoute{"/metrics", {Endpoint::metrics, "metrics", "GET"}},
    PathRoute{"/version", {Endpoint::version, "version", "GET"}},
    PathRoute{"/user/balance", {Endpoint::balance, "balance", "GET"}},
    PathRoute{"/openapi.json", {Endpoint::openapi, "openapi", "GET", ErrorShape::openai, true}},
    PathRoute{"/", {Endpoint::page, "page", "GET", ErrorShape::openai, true}},
    PathRoute{"/v1/models/", kModels, true},
    PathRoute{"/models/", kModels, true},
    PathRoute{"/v1/responses/", kStored, true},
    PathRoute{"/responses/", kStored, true},
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

std::span<const PathRoute> all_routes() {
  return kRoutes;
}

std::optional<Route> find_route(std::string_view path) {
  for (const PathRoute& entry : kRoutes) {
    if (entry.is_folder ? path.size() > entry.path.size() && path.starts_with(entry.path)
                        : path == entry.path) {
      return entry.route;
    }
  }
  return std::nullopt;
}

}  // namespace thalweg::serve
