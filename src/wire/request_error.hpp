// Why a request is refused.
#pragma once

#include <string>

#include "base/error.hpp"
#include "base/json.hpp"

namespace thalweg::wire {

/// A request that is refused. `what()` is the message for the client.
class RequestError : public Error {
 public:
  RequestError(const std::string& message, std::string param)
      : Error(Fault::input, message), param_(std::move(param)) {}

  /// HTTP status to answer with.
  int status() const { return 400; }
  /// The field at fault, as `messages[2].content`; empty if no single one is.
  const std::string& param() const { return param_; }

 private:
  std::string param_;
};

/// Not JSON, a field of the wrong type, a missing field, an unknown variant.
class MalformedRequest : public RequestError {
 public:
  using RequestError::RequestError;
};

/// Well formed, but asking for what is not allowed, not consistent or not supported.
class RejectedRequest : public RequestError {
 public:
  using RequestError::RequestError;
};

/// {"message", "type", "param", "code"}, the error object of Chat Completions and Responses.
Json error_object(const RequestError& error);

}  // namespace thalweg::wire
