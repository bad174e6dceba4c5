// The Completions request: a raw prompt to be continued.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/request.hpp"
#include "serve/backend.hpp"
#include "wire/request.hpp"

namespace thalweg::serve {

struct CompletionsRequest {
  std::string model;
  engine::Request request;
  bool stream = false;
  bool include_usage = false;
  std::string echo;  ///< the prompt's text, if it is to be repeated
  std::vector<std::string> ignored_fields;
};

/// Reads a body (from wire::parse_body). A text gets BOS in front and may spell control tokens; ids are taken
/// as they are. Throws wire::RequestError.
CompletionsRequest read_completions(const Json& body, const wire::Policy& policy, const Backend& backend);

/// Ids of a raw text: BOS in front unless it spells BOS itself.
std::vector<text::TokenId> encode_raw(const std::string& text, const Backend& backend);

/// A list of token ids at `path`. Throws MalformedRequest or RejectedRequest.
std::vector<text::TokenId> read_ids(const Json& list, const std::string& path,
                                    const text::Tokenizer& tokenizer);

}  // namespace thalweg::serve
