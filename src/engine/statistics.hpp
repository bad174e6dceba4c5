// What an engine counts.
#pragma once

#include <array>
#include <cstdint>

#include "cache/prefix_cache.hpp"
#include "engine/buckets.hpp"
#include "engine/scheduler.hpp"

namespace thalweg::engine {

/// Since the start. In every snapshot: admitted = waiting + running + finished + aborted requests, and of the
/// finished and aborted ones whose prompt was started: prompt = reused + replayed + computed tokens.
struct EngineStatistics {
  std::uint64_t admitted = 0;
  std::uint64_t waiting = 0;  ///< requests none of whose answers is running
  std::uint64_t running = 0;
  std::uint64_t finished = 0;  ///< stop, length or failed
  std::uint64_t aborted = 0;   ///< by the caller or a deadline
  std::uint64_t refused = 0;   ///< never admitted
  std::uint64_t prompt_tokens = 0;
  std::uint64_t reused_tokens = 0;
  std::uint64_t replayed_tokens = 0;
  std::uint64_t computed_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  std::uint64_t draws = 0;  ///< times a sequence got its next tokens: one, or more with accepted drafts
  std::uint64_t drafts_verified = 0;
  std::uint64_t drafts_accepted = 0;
  /// By place in the block: verified drafts whose predecessors were accepted, and those accepted of them.
  std::array<std::uint64_t, 16> drafts_tried_at{};
  std::array<std::uint64_t, 16> drafts_accepted_at{};
  double device_seconds = 0;  ///< steps on the device
  double draft_seconds = 0;   ///< of which drafting
  double gap_seconds = 0;     ///< the device waited between steps while there was work
  double host_seconds =
      0;  ///< processor time of planning steps and handling results (stop rules, text, sinks)
  double plan_seconds = 0;              ///< of which planning and launching
  Buckets<kSecondBounds> step_seconds;  ///< of every step, on the device
  Buckets<kRowBounds> step_rows;        ///< of every step
  Buckets<kSecondBounds>
      queue_seconds;              ///< from submission to the first block, of ended requests that had one
  std::uint32_t free_blocks = 0;  ///< those that only cached prefixes hold included
  std::int32_t running_sequences = 0;
  SchedulerStatistics scheduler;
  cache::CacheStatistics cache;
};

}  // namespace thalweg::engine
