#include "wire/request_error.hpp"

namespace thalweg::wire {

Json error_object(const RequestError& error) {
  return {{"message", error.what()},
          {"type", "invalid_request_error"},
          {"param", error.param().empty() ? Json() : Json(error.param())},
          {"code", "invalid_request_error"}};
}

}  // namespace thalweg::wire
