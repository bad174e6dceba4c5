// Requests of the Messages API.
#pragma once

#include "base/json.hpp"
#include "wire/request.hpp"

namespace thalweg::wire {

/// Reads the body of POST /v1/messages or /v1/messages/count_tokens (from parse_body). Throws
/// MalformedRequest or RejectedRequest. Linear in the size of the body.
Request read_messages(const Json& body, const Policy& policy);

}  // namespace thalweg::wire
