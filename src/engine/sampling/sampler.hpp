// From one row of logits to one token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "engine/sampling/filters.hpp"
#include "engine/sampling/logprobs.hpp"
#include "engine/sampling/penalties.hpp"
#include "engine/sampling/sampling_params.hpp"

namespace thalweg::engine {

/// Grammar, allowed and banned tokens and min_tokens together leave no token to produce.
class NoTokenAllowed : public WorkError {
 public:
  using WorkError::WorkError;
};

/// What a row depends on besides its logits and the request's parameters.
struct RowContext {
  /// Index, in the sequence's timeline, of the token being produced (the prompt's length for the first one).
  std::int64_t position = 0;
  /// Output tokens before it (for min_tokens).
  std::int64_t output_length = 0;
  /// Counts up to and without the token being produced. Required if the request has penalties, else may be
  /// null.
  const TokenCounts* counts = nullptr;
  /// Grammar mask: token t may be produced iff bit t % 32 of word t / 32 is set; at least ceil(vocab / 32)
  /// words, or empty: no grammar.
  std::span<const std::uint32_t> allowed = {};
};

/// Working memory of a sampler, made once for a vocabulary and used by one thread at a time.
struct SamplerScratch {
  explicit SamplerScratch(std::int32_t vocab_size);
  std::vector<float> row;  ///< the row after penalties, bias and masks
  FilterScratch filters;
};

/// Log-probabilities of one produced token; filled as far as the request asks for them.
struct OutputLogprobs {
  RowLogprobs raw;
  RowLogprobs filtered;
};

/// Draws the tokens of one sequence. Order of operations: penalties on the raw logits, logit bias, masks
/// (allowed, banned, grammar), the ban on end of sequence and stop tokens before min_tokens, temperature,
/// top-k, top-p, min-p, then the largest of logit / temperature + Gumbel noise (gumbel.hpp), ties to the
/// lower id; at temperature 0 the largest logit, ties to the lower id.
///
/// The token is a pure function of (logits, context, parameters, seed): no state is kept between calls, so
/// rows may be sampled in any order, on any thread, again, or ahead for speculation. Immutable after
/// construction; safe to share.
class Sampler {
 public:
  /// `params` are validated here (InputError). `seed` is the sequence's own: `choice_seed(request seed,
  /// choice)`. `eos_token` < 0: the model has none.
  Sampler(const SamplingParams& params, std::uint64_t seed, std::int32_t vocab_size, std::int32_t eos_token);

  /// The token that follows `logits` ([vocab] as the model computed them; not changed). Fills `logprobs` if
  /// it is not null. No allocation, but for `logprobs` lists that outgrow their capacity. Throws
  /// NoTokenAllowed, WorkError naming position and token if a logit is NaN or +inf, InputError for a row or
  /// mask of the wrong length or missing counts.
  std::int32_t sample(std::span<const float> logits, const RowContext& context, SamplerScratch& scratch,
                      OutputLogprobs* logprobs = nullptr) const;

  const SamplingParams& params() const { return params_; }
  std::uint64_t seed() const { return seed_; }
  std::int32_t vocab_size() const { return vocab_size_; }

 private:
  bool adjusts(const RowContext& context) const;
  void adjust(std::span<float> row, const RowContext& context) const;

  SamplingParams params_;
  std::uint64_t seed_;
  std::int32_t vocab_size_;
  Filters filters_;
  std::vector<std::uint32_t> allowed_;    // bit mask of allowed and banned tokens; empty: all are allowed
  std::vector<std::int32_t> end_tokens_;  // end of sequence (unless ignored) and stop tokens
};

/// Seed of answer `choice` of a request with n > 1. Choice 0 has the request's own seed, so that n = 1 gives
/// the first of n answers.
std::uint64_t choice_seed(std::uint64_t seed, std::int32_t choice);

}  // namespace thalweg::engine
