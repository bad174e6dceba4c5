// The OpenAPI document: the routes as they are, with the schemas of openapi_*.json.
#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "wire/request.hpp"

namespace thalweg::serve {

/// The document of a service with this policy, OpenAPI 3.1. `keys`: most paths need one.
Json openapi(const std::string& version, const wire::Policy& policy, bool keys);

/// The files that it is made of; inside the program.
std::string_view openapi_operations();
std::string_view openapi_requests();
std::string_view openapi_replies();

}  // namespace thalweg::serve
