// One sequence alone on a backend: the shortest way from tokens to logits, for measuring and checking. It
// builds the same plans as the engine's scheduler does for many sequences.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backend/backend.hpp"

namespace thalweg::engine {

/// Pages that hold the global KV of `tokens` positions.
std::size_t pages_for(std::int64_t tokens);

/// A growing list of tokens whose caches live in slot 0 and pages 0.. of a backend that has nothing else to
/// do.
class Timeline {
 public:
  explicit Timeline(backend::Backend& backend);

  /// Called with a position and the logits [vocab] that follow it.
  using OnLogits = std::function<void(std::int64_t position, std::span<const float> logits)>;

  /// Appends tokens in steps of at most `chunk` rows; logits of every position (`all`) or of the last only.
  /// The caller made the backend with pages enough. Throws InputError if a token is outside the vocabulary.
  void append(std::span<const std::int32_t> tokens, std::size_t chunk, bool all, const OnLogits& on_logits);

  /// The same with bounded replay: layers of the decoder half run only on the last `keep` tokens (and see no
  /// window keys before them). Only for the first tokens of a timeline. With `all`, logits of the kept
  /// positions.
  void append_replayed(std::span<const std::int32_t> tokens, std::int64_t keep, std::size_t chunk, bool all,
                       const OnLogits& on_logits);

  /// Drafts the block that starts with `token`, the next one after the timeline.
  backend::DraftResult draft(std::int32_t token, const backend::DraftChoice& choose);

  std::int64_t length() const { return static_cast<std::int64_t>(tokens_.size()); }
  /// Starts again with no tokens.
  void clear() {
    tokens_.clear();
    decoder_floor_ = 0;
  }

 private:
  void plan_chunk(std::span<const std::int32_t> tokens, bool all);

  backend::Backend& backend_;
  std::vector<std::int32_t> tokens_;
  std::int64_t decoder_floor_ = 0;  // first position with decoder state
  model::StepPlan plan_;
};

}  // namespace thalweg::engine
