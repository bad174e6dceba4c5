// Repetition, presence and frequency penalties, and the token counts they need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/sampling/sampling_params.hpp"

namespace thalweg::engine {

/// How often each token stands in a sequence's prompt and output. Holds the distinct tokens only. A value:
/// copies are independent. Not thread-safe.
class TokenCounts {
 public:
  struct Entry {
    std::int32_t token = 0;
    std::uint32_t prompt = 0;  ///< occurrences in the prompt
    std::uint32_t output = 0;  ///< occurrences in the output
  };

  /// Counts `prompt`; `reserve_output` output tokens can then be appended without allocation.
  explicit TokenCounts(std::span<const std::int32_t> prompt = {}, std::size_t reserve_output = 0);

  /// Appends one output token (committed, or a draft that may be rolled back).
  void append(std::int32_t token);
  /// Takes back the last `count` appended tokens. Throws std::out_of_range if there are fewer.
  void rollback(std::size_t count);

  std::size_t output_length() const { return output_.size(); }
  /// One entry a token ever seen, in order of first appearance; an entry may have fallen back to zero counts.
  std::span<const Entry> entries() const { return entries_; }

 private:
  Entry& entry_of(std::int32_t token);
  void grow(std::size_t entries);

  std::vector<Entry> entries_;
  std::vector<std::int32_t> slots_;  // open addressing, a power of two long: index into entries_, or -1
  std::vector<std::int32_t> output_;
};

/// Applies the penalties of `params` to `logits` (one row, [vocab]) in place: repetition first (prompt and
/// output tokens; a positive logit is divided, another multiplied), then frequency * count + presence is
/// subtracted (output tokens). Each logit is computed in double and rounded once.
void apply_penalties(std::span<float> logits, const TokenCounts& counts, const SamplingParams& params);

}  // namespace thalweg::engine
