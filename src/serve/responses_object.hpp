// The response object of the Responses API: what it repeats of the request, and its fixed members.
#pragma once

#include <optional>

#include "serve/protocol.hpp"

namespace thalweg::serve {

/// The object as it is before anything was generated: status "in_progress", empty output, no usage. `stored`:
/// it will be kept.
Json response_object(const AnswerHead& head, const Json& body, bool stored);

/// The tools of a request with the members that clients expect to find.
Json echo_tools(const Json& body);

}  // namespace thalweg::serve
