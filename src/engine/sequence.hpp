// One answer in progress: its tokens, how far they are computed, and what belongs to it in the cache.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cache/prefix_cache.hpp"
#include "engine/output.hpp"
#include "engine/request.hpp"
#include "engine/step.hpp"

namespace thalweg::engine {

/// A request in the engine, shared by its answers.
struct ActiveRequest {
  RequestId id = 0;
  Request request;
  EventSink sink;
  std::shared_ptr<const grammar::CompiledGrammar> grammar;  ///< of the constraint, once compiled
  std::int64_t rank =
      0;  ///< place in line: step of arrival, less a head start for priority; lower goes first
  Clock::time_point submitted = Clock::now();
  std::optional<Clock::time_point> started;  ///< when the first of its answers came to run
  std::int64_t max_length = 0;               ///< tokens, prompt included, at which an answer ends
  std::int64_t decoder_floor = 0;            ///< bounded replay: first position with a decoder half
  std::int64_t last_resume = 0;              ///< the cache may stand in for so many tokens at most
  std::int32_t open_choices = 0;
  std::int32_t running_choices = 0;
  Usage usage;  ///< of the prompt; set when it is first admitted
  bool prompt_counted = false;
  bool prompt_done = false;  ///< all its rows have been launched
  std::int64_t prompt_rows_asked =
      0;  ///< prompt rows whose logits have been asked for (prompt log-probabilities)
  std::vector<RowLogprobs> prompt_logprobs;
};

struct Sequence {
  enum class Stage {
    waiting,   ///< not on the device: new, or preempted
    running,   ///< has blocks and a slot
    finished,  ///< may still have rows in a launched step
  };

  std::uint64_t id = 0;
  std::shared_ptr<ActiveRequest> active;
  std::int32_t choice = 0;
  Stage stage = Stage::waiting;

  std::vector<std::int32_t> tokens;  ///< prompt, then the produced tokens whose values are known
  std::int64_t prompt_length = 0;
  std::int64_t computed = 0;  ///< positions whose rows have been launched
  std::int32_t pending = 0;   ///< launched steps that draw tokens of it; one at most while a step is planned
  std::int32_t pending_sample = 0;   ///< its sample index in the newest of them
  std::int32_t in_flight = 0;        ///< launched steps with rows of this sequence
  std::vector<std::int32_t> drafts;  ///< proposed for the positions after the newest token
  std::vector<float> confidences;    ///< of the drafts
  std::int32_t verify = 0;           ///< drafts that the step being planned verifies
  bool draft_next = false;           ///< and whether a block is drafted after it
  std::uint64_t gave_way = 0;        ///< the plan that preempted it last

  cache::Sequence place;
  std::optional<cache::SavedSequence> saved;
  std::shared_ptr<SamplingState> sampling;
  std::optional<Output> output;

  std::int64_t known() const { return static_cast<std::int64_t>(tokens.size()); }
  /// Tokens produced so far.
  std::int64_t produced() const { return known() - prompt_length; }
  /// The token being drawn included.
  std::int64_t length() const { return known() + pending; }
  std::int64_t rows_left() const { return length() - computed; }
  /// All the tokens it may have are there or being drawn.
  bool full() const { return length() >= active->max_length; }
  cache::Content content() const { return {tokens, {}}; }
};

/// Who goes first: lower rank, then the one that came first.
inline bool goes_before(const Sequence& a, const Sequence& b) {
  if (a.active->rank != b.active->rank) return a.active->rank < b.active->rank;
  return a.id < b.id;
}

}  // namespace thalweg::engine
