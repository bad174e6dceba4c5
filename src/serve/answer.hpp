// What an answer is made of, whichever API it is told through.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/parsed_message.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::serve {

/// What every chunk of an answer repeats.
struct AnswerHead {
  std::string id;
  std::string model;  ///< the name the client used
  std::string system_fingerprint;
  std::int64_t created = 0;  ///< seconds since 1970
};

/// Tokens of the prompt, and how many of them had their state in a cache.
struct PromptUsage {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
};

struct RankedToken {
  text::TokenId token = 0;
  double logprob = 0;
};

/// One token of the answer: its log-probability and the likeliest alternatives.
struct TokenLogprob {
  RankedToken chosen;
  std::vector<RankedToken> top;
};

/// A new piece of one answer. Pieces of one kind may be cut or joined anywhere between characters.
struct AnswerPart {
  std::int32_t choice = 0;
  text::ParseEvent event;
  std::vector<TokenLogprob> logprobs;  ///< of the tokens that `event.text` is made of, if asked for
};

/// The end of one answer.
struct AnswerEnd {
  std::int32_t choice = 0;
  text::BackendFinish finish = text::BackendFinish::stop;
  std::int64_t output_tokens = 0;
};

}  // namespace thalweg::serve
