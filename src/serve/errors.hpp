// Refusals and failures as HTTP tells them.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/json.hpp"
#include "wire/request_error.hpp"

namespace thalweg::serve {

/// An answer that is an error. `what()` is the message for the client.
class HttpError : public Error {
 public:
  /// `type` is the error type of the OpenAI APIs; Messages has its own names for some, see error_body().
  /// `code` is the same unless given.
  HttpError(int status, std::string type, const std::string& message, std::string param = "",
            std::string code = "")
      : Error(Fault::input, message),
        status_(status),
        type_(std::move(type)),
        param_(std::move(param)),
        code_(code.empty() ? type_ : std::move(code)) {}

  int status() const { return status_; }
  const std::string& type() const { return type_; }
  const std::string& param() const { return param_; }  ///< the field at fault; empty if no single one is
  const std::string& code() const { return code_; }

 private:
  int status_;
  std::string type_;
  std::string param_;
  std::string code_;
};

HttpError bad_request(const std::string& message, std::string param = "");
HttpError from_request_error(const wire::RequestError& error);
HttpError not_found(const std::string& message);
HttpError too_large(const std::string& message);
HttpError internal_error(const std::string& message);
/// 503: loading, draining or overloaded.
HttpError unavailable(const std::string& message);

/// Which of the two shapes an error has.
enum class ErrorShape { openai, anthropic };

/// {"message", "type", "param", "code"}.
Json error_object(const HttpError& error);

/// The body of an error: {"error": {...}}, or Anthropic's {"type": "error", "error": {...}, "request_id"}.
Json error_body(const HttpError& error, ErrorShape shape, const std::string& request_id);

/// Anthropic's name of an error type.
std::string anthropic_type(const HttpError& error);

}  // namespace thalweg::serve
