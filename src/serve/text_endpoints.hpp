// POST /tokenize and /detokenize: texts and conversations to ids, and back.
#pragma once

#include "base/json.hpp"
#include "serve/backend.hpp"
#include "wire/request.hpp"

namespace thalweg::serve {

/// The ids of a conversation's prompt. Throws RejectedRequest if it holds images.
std::vector<text::TokenId> encode_conversation(text::Conversation conversation, const Backend& backend);

/// {"text", "add_special_tokens", "parse_special", "return_pieces"} or a Chat Completions body, to {"ids",
/// "count", "pieces"}. Throws wire::RequestError.
Json tokenize(const Json& body, const wire::Policy& policy, const Backend& backend);

/// {"ids"} to {"text"}. Throws wire::RequestError.
Json detokenize(const Json& body, const Backend& backend);

}  // namespace thalweg::serve
