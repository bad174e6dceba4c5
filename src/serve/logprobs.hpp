// Log-probabilities of tokens: which part of the answer a token belongs to, and how they are shown.
#pragma once

#include <optional>
#include <vector>

#include "base/json.hpp"
#include "engine/request.hpp"
#include "serve/answer.hpp"
#include "text/special_tokens.hpp"

namespace thalweg::serve {

/// {"token", "logprob", "bytes", "top_logprobs"}; bytes that are not UTF-8 by themselves are shown as \xNN.
Json logprob_json(const TokenLogprob& logprob, const text::Tokenizer& tokenizer);
/// The token's spelling: its text, or \xNN escapes if its bytes are not UTF-8.
std::string token_spelling(text::TokenId token, const text::Tokenizer& tokenizer);

/// Gives the tokens of one answer to the pieces of text they make. Tokens of markup (the end of the
/// reasoning, calls, a stop sequence) belong to no text and are dropped.
class LogprobSorter {
 public:
  /// `tools`: a block of calls is markup. `specials` may be null: raw text has no markup.
  LogprobSorter(const text::SpecialTokens* specials, bool tools) : specials_(specials), tools_(tools) {}

  /// `parts` are what the token of `event` brought; each gets the tokens it is made of.
  void sort(const engine::Event& event, std::vector<AnswerPart>& parts);

 private:
  const text::SpecialTokens* specials_;
  bool tools_;
  bool in_calls_ = false;
  std::vector<TokenLogprob> waiting_;  ///< tokens whose text is held back
};

}  // namespace thalweg::serve
