// Helpers of the request tests: reading requests, rendering them, expecting refusals.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/text_data.hpp"
#include "text/special_tokens.hpp"
#include "wire/fields.hpp"
#include "wire/read_request.hpp"

namespace thalweg::testing {

inline const text::SpecialTokens& released_specials() {
  static const text::SpecialTokens specials = text::find_special_tokens(released_tokenizer());
  return specials;
}

inline wire::Request read(const std::string& api, const Json& request, const wire::Policy& policy = {}) {
  return wire::read_request(*wire::api_from_string(api), request, policy);
}

inline wire::Request read(const std::string& api, const std::string& body, const wire::Policy& policy = {}) {
  return read(api, wire::parse_body(body), policy);
}

inline Json describe(const std::string& api, const Json& request) {
  return wire::describe(read(api, request), released_tokenizer(), released_specials());
}

inline std::string prompt_of(const std::string& api, const std::string& body) {
  return describe(api, wire::parse_body(body))["prompt"];
}

/// A Chat Completions body with this message list and these further members, as JSON text.
inline std::string chat_body(const std::string& messages, const std::string& more = "") {
  return R"({"model": "DeepSeek-V4.1-Flash", "messages": )" + messages + (more.empty() ? "" : ", " + more) +
         "}";
}

/// What a body was refused with; fails the test if it was accepted.
struct Refusal {
  std::string message;
  std::string param;
  bool malformed = false;
};

inline Refusal refusal_of(const std::string& api, const std::string& body, const wire::Policy& policy = {}) {
  try {
    read(api, body, policy);
  } catch (const wire::MalformedRequest& error) {
    return {error.what(), error.param(), true};
  } catch (const wire::RequestError& error) {
    return {error.what(), error.param(), false};
  }
  ADD_FAILURE() << "accepted: " << body.substr(0, 200);
  return {};
}

}  // namespace thalweg::testing
