// Top-k, top-p and min-p as one cut through the row's tokens in their order of likelihood.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace thalweg::engine {

/// Tokens are ordered by logit, largest first, ties by lower id. Every filter keeps a prefix of that order,
/// so all of them together are described by the last token kept.
struct FilterCut {
  float logit = -std::numeric_limits<float>::infinity();
  std::int32_t token = std::numeric_limits<std::int32_t>::max();

  bool keeps(float l, std::int32_t t) const { return l > logit || (l == logit && t <= token); }
};

/// The filters of a request; see SamplingParams for ranges. `temperature` > 0.
struct Filters {
  double temperature = 1;
  std::int32_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
};

/// Working memory of `find_cut`, made once for a vocabulary and used by one thread at a time.
class FilterScratch {
 public:
  explicit FilterScratch(std::size_t vocab_size) { members_.reserve(vocab_size); }

 private:
  friend class CutFinder;
  static constexpr std::size_t bins = 1024;
  struct Member {
    float logit;
    std::int32_t token;
  };
  std::array<std::uint32_t, bins> counts_{};
  std::array<std::uint64_t, bins> masses_{};
  std::vector<Member> members_;  // the tokens of one bin
};

/// Where the filters cut `logits` (one row, [vocab]; -inf entries are out from the start; `max_logit` is the
/// largest and finite). In this order: the `top_k` first tokens; of those, renormalised, the tokens whose
/// mass before them is
/// <= top_p (masses are the integers of token_weights.hpp); of those, the tokens at least min_p times as
/// likely as the first. The first token always survives. Deterministic, independent of any other row; linear
/// in the vocabulary: only the tokens of the bin (1/32 of a logit wide) in which a cut falls are sorted.
FilterCut find_cut(std::span<const float> logits, float max_logit, const Filters& filters,
                   FilterScratch& scratch);

}  // namespace thalweg::engine
