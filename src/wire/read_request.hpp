// One door for the three request formats.
#pragma once

#include <optional>
#include <string_view>

#include "base/json.hpp"
#include "text/special_tokens.hpp"
#include "text/tokenizer.hpp"
#include "wire/request.hpp"

namespace thalweg::wire {

enum class Api { chat, responses, messages };

/// "chat", "responses" or "messages"; none for any other name.
std::optional<Api> api_from_string(std::string_view name);

/// Reads a request body (from parse_body) in the format of `api`. Throws MalformedRequest or RejectedRequest.
Request read_request(Api api, const Json& body, const Policy& policy);

/// What `inspect render` prints: the prompt as text and as ids, its images, and every setting that was
/// derived. Consumes the conversation.
Json describe(Request request, const text::Tokenizer& tokenizer, const text::SpecialTokens& specials);

}  // namespace thalweg::wire
