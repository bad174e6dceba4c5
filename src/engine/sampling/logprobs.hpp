// Log-probabilities of one row: the chosen token's and the most likely alternatives.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sampling/filters.hpp"

namespace thalweg::engine {

struct TokenLogprob {
  std::int32_t token = 0;
  float logprob = 0;
};

/// `chosen` is always there; `top` holds the most likely tokens, best first, ties to the lower id, and may or
/// may not contain the chosen one.
struct RowLogprobs {
  float chosen = 0;
  std::vector<TokenLogprob> top;
};

/// Softmax of the whole row as it is. Serves output tokens (before penalties and filters) and prompt tokens,
/// where `chosen` is the token that follows the row. `top_n` above the vocabulary gives the vocabulary. `out`
/// is overwritten; its memory is reused. Throws InputError if `chosen` is no token of the row, WorkError if a
/// logit is NaN or +inf or if all are -inf.
void raw_logprobs(std::span<const float> logits, std::int32_t chosen, std::int32_t top_n, RowLogprobs& out);

/// The distribution drawn from: softmax of logits / temperature over the tokens that `cut` keeps. `top` has
/// at most as many tokens as survive. `chosen` must survive; `max_logit` is the largest logit of the row.
void filtered_logprobs(std::span<const float> logits, float max_logit, double temperature, FilterCut cut,
                       std::int32_t chosen, std::int32_t top_n, RowLogprobs& out);

}  // namespace thalweg::engine
