// Requests of the Chat Completions API.
#pragma once

#include "base/json.hpp"
#include "wire/request.hpp"

namespace thalweg::wire {

/// Reads the body of POST /v1/chat/completions (from parse_body). Throws MalformedRequest or RejectedRequest.
/// Time and memory are linear in the size of the body.
Request read_chat_completions(const Json& body, const Policy& policy);

}  // namespace thalweg::wire
