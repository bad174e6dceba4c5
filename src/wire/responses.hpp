// Requests of the Responses API.
#pragma once

#include "base/json.hpp"
#include "wire/request.hpp"

namespace thalweg::wire {

/// Reads the body of POST /v1/responses (from parse_body). Tools of namespaces are called `NAMESPACE::NAME`
/// in the prompt; Request::tool_origins leads back. `earlier` is the list of items, input and output, that
/// `previous_response_id` stands for; without it that member is refused. Throws MalformedRequest or
/// RejectedRequest. Linear in the size of the body.
Request read_responses(const Json& body, const Policy& policy, const Json* earlier = nullptr);

}  // namespace thalweg::wire
