// Which path leads where.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "serve/errors.hpp"

namespace thalweg::serve {

enum class Endpoint {
  chat,
  responses,
  stored_response,
  messages,
  count_tokens,
  completions,
  models,
  tokenize,
  detokenize,
  health,
  ready,
  metrics,
  version,
  balance,
  openapi,
  page,
};

struct Route {
  Endpoint endpoint;
  std::string_view name;    ///< for metrics
  std::string_view method;  ///< GET (HEAD as well) or POST
  ErrorShape shape = ErrorShape::openai;
  bool open = false;     ///< needs no key
  bool deletes = false;  ///< DELETE as well

  bool allows(std::string_view asked) const;
  /// As the header field Allow has it.
  std::string methods() const;
};

struct PathRoute {
  std::string_view path;
  Route route;
  bool is_folder = false;  ///< the path goes on with a name
};

/// Every path there is.
std::span<const PathRoute> all_routes();

/// The route of a path without its query; none if there is no such path.
std::optional<Route> find_route(std::string_view path);

/// The target without its query.
std::string_view path_of(std::string_view target);

}  // namespace thalweg::serve
