#include "serve/errors.hpp"

namespace thalweg::serve {

HttpError bad_request(const std::string& message, std::string param) {
  return {400, "invalid_request_error", message, std::move(param)};
}

HttpError from_request_error(const wire::RequestError& error) {
  return {error.status(), "invalid_request_error", error.what(), error.param()};
}

HttpError not_found(const std::string& message) {
  return {404, "not_found_error", message};
}

HttpError too_large(const std::string& message) {
  return {413, "invalid_request_error", message};
}

HttpError internal_error(const std::string& message) {
  return {500, "internal_error", message};
}

HttpError unavailable(const std::string& message) {
  return {503, "overloaded_error", message};
}

Json error_object(const HttpError& error) {
  return {{"message", error.what()},
          {"type", error.type()},
          {"param", error.param().empty() ? Json() : Json(error.param())},
          {"code", error.code()}};
}

std::string anthropic_type(const HttpError& error) {
  if (error.status() == 413) return "request_too_large";
  if (error.status() == 500) return "api_error";
  return error.type();
}

Json error_body(const HttpError& error, ErrorShape shape, const std::string& request_id) {
  if (shape == ErrorShape::openai) return {{"error", error_object(error)}};
  return {{"type", "error"},
          {"error", {{"type", anthropic_type(error)}, {"message", error.what()}}},
          {"request_id", request_id}};
}

}  // namespace thalweg::serve
