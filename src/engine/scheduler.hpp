// Chooses the rows of every step. Policy:
//  - One line: sequences are ordered by arrival, a level of priority being worth kPriorityHeadStart steps.
//  Everything
//    below follows that order, so whoever is first in line always gets on, and nobody waits for later
//    arrivals longer than the head start of their priority.
//  - A step mixes decode rows of all running sequences with prompt chunks in what is left of the row budget.
//  - Blocks are taken as they are needed. When they run out, the last in line that is not in the step yet
//  gives way:
//    its state is moved to host memory or dropped and computed again, whichever is cheaper.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cache/prefix_cache.hpp"
#include "engine/sequence.hpp"
#include "engine/speculation/policy.hpp"
#include "engine/step.hpp"

namespace thalweg::engine {

constexpr std::int64_t kPriorityHeadStart = 1000;  ///< steps that one level of priority is worth

struct SchedulerOptions {
  std::int32_t batch_tokens = 512;  ///< rows of a step at most
  std::int32_t sequences = 16;      ///< running at once
  std::int32_t snapshot_every =
      512;                    ///< prompts can later resume at multiples of this; a multiple of the block size
  std::int32_t lookback = 0;  ///< tokens of history a step carries
  std::int64_t context = 0;   ///< positions of a sequence at most
  std::size_t block_bytes = 0;  ///< what saving a sequence moves: for each of its blocks,
  std::size_t slot_bytes = 0;   ///< and once
};

struct SchedulerStatistics {
  std::uint64_t preempted_saved = 0;
  std::uint64_t preempted_dropped = 0;
  std::uint64_t recomputed_tokens = 0;  ///< rows run again after a drop
};

/// Owns the sequences. One thread.
class Scheduler {
 public:
  /// `policy` may be null: no speculation. With one, a step must be processed before the next is planned.
  Scheduler(const SchedulerOptions& options, cache::PrefixCache& cache, SpeculationPolicy* policy)
      : options_(options), cache_(cache), policy_(policy) {}

  void add(std::unique_ptr<Sequence> sequence);
  /// Fills `step` with the next rows. False: nothing can or need be run now.
  bool plan(Step& step);
  /// The step just planned has been launched: publishes what it computes. To be called before anything else
  /// is launched.
  void launched(Step& step);
  /// Ends a sequence: publishes its tokens if `keep`, gives blocks and slot back.
  void finish(Sequence& sequence, bool keep);
  /// Removes finished sequences without rows in flight.
  void collect();

  const std::vector<std::unique_ptr<Sequence>>& sequences() const { return sequences_; }
  std::int32_t running() const { return running_; }
  /// Seconds that a computed token costs, a running mean; decides between saving and computing again.
  void learn_cost(std::int64_t rows, double seconds);
  const SchedulerStatistics& statistics() const { return statistics_; }

 private:
  bool admit(Sequence& sequence);
  bool schedule(Sequence& sequence, std::int32_t budget, Step& step);
  std::int32_t chunk_of(const Sequence& sequence, std::int32_t budget) const;
  bool make_room(const Sequence& for_whom);
  void preempt(Sequence& victim);
  void add_rows(Sequence& sequence, std::int32_t rows, Step& step);
  void add_sample(Sequence& sequence, Step& step);
  bool cheaper_to_save(const Sequence& sequence) const;
  void choose_drafts();
  void add_prompt_tasks(Sequence& sequence, std::int32_t rows, Step& step);
  void stop_running(Sequence& sequence);

  SchedulerOptions options_;
  cache::PrefixCache& cache_;
  SpeculationPolicy* policy_;
  std::vector<DraftView> views_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> line_;  // of the step being planned
  std::int32_t running_ = 0;
  double seconds_per_row_ = 0;
  double seconds_per_byte_ = 0;
  SchedulerStatistics statistics_;
};

}  // namespace thalweg::engine
