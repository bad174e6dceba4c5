// Chooses the rows of every step (docs/engine.md). Policy:
//  - One line: sequences are ordered by arrival, a level of priority being worth kPriorityHeadStart steps.
//    Everything below follows that order, so nobody waits for later arrivals longer than the head start of
//    their priority.
//  - A step mixes rows of all running sequences: the newest token of each, prompt chunks in what is left of
//  the
//    row budget.
//  - Blocks are taken as they are needed, but a sequence is admitted only when the blocks of all its tokens
//  can
//    be had beside what running ones still lack for theirs. So only growth of answers makes blocks run out.
//  - When they do, the last in line gives way to whoever is before it: its state moves to host memory or is
//    dropped and computed again, whichever is cheaper. Nobody gives way to those behind.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "cache/prefix_cache.hpp"
#include "engine/sequence.hpp"
#include "engine/speculation/policy.hpp"
#include "engine/step.hpp"

namespace thalweg::engine {

constexpr std::int64_t kPriorityHeadStart = 1000;  ///< steps that one level of priority is worth

struct SchedulerOptions {
  std::int32_t batch_tokens = 512;  ///< rows of a step at most; at least `sequences`
  std::int32_t sequences = 16;      ///< running at once
  std::int32_t snapshot_every =
      512;  ///< prompts can later resume at multiples of this; a multiple of the block size
  std::int32_t block_tokens = 0;  ///< positions of a block
  std::int32_t lookback = 0;      ///< tokens of history a step carries
  std::int64_t context = 0;       ///< positions of a sequence at most
  std::size_t block_bytes = 0;    ///< what saving a sequence moves: for each of its blocks,
  std::size_t slot_bytes = 0;     ///< and once
  double copy_bytes_per_second =
      4e9;  ///< between device and host memory; decides between saving and dropping
};

struct SchedulerStatistics {
  std::uint64_t preempted_saved = 0;
  std::uint64_t preempted_dropped = 0;
  std::uint64_t recomputed_tokens = 0;  ///< rows run again after a drop
};

/// Owns the sequences. One thread. A step goes `plan`, launch, `launched`; its results are handled later,
/// sequence by sequence, after `landed`.
class Scheduler {
 public:
  /// `policy` may be null: no speculation. With one, a step must be processed before the next is planned.
  Scheduler(const SchedulerOptions& options, cache::PrefixCache& cache, SpeculationPolicy* policy)
      : options_(options), cache_(cache), policy_(policy) {}

  /// Places a sequence in the line. Its request's `rank` does not change any more.
  void add(std::unique_ptr<Sequence> sequence);
  /// Fills `step` with the next rows. False: nothing can or need be run now.
  bool plan(Step& step);
  /// The step just planned has been launched: publishes what it computes. To be called before anything else
  /// is launched.
  void launched(Step& step);
  /// The results of a part are there; false if nobody wants them, because its sequence has ended.
  bool landed(const StepPart& part);
  /// Ends a sequence: publishes its tokens if `keep`, gives blocks and slot back. Steps in flight may still
  /// write there: copies and later steps are executed after them.
  void finish(Sequence& sequence, bool keep);
  /// Removes finished sequences without rows in flight.
  void collect();

  /// In the order of the line; answers of one request stand together.
  const std::vector<std::unique_ptr<Sequence>>& sequences() const { return sequences_; }
  std::int32_t running() const { return running_; }
  /// Requests with a running answer.
  std::uint64_t running_requests() const { return running_requests_; }
  /// Tells what a computed row costs; a running mean decides between saving and dropping.
  void learn_cost(std::int64_t rows, double seconds);
  const SchedulerStatistics& statistics() const { return statistics_; }

 private:
  std::int64_t blocks_for(std::int64_t tokens) const {
    return (tokens + options_.block_tokens - 1) / options_.block_tokens;
  }
  cache::Prompt prompt_of(const Sequence& sequence) const;
  std::int64_t blocks_lacking(const Sequence& sequence) const;
  std::int64_t uncommitted_blocks() const;
  void choose_drafts();
  bool admit(std::size_t index);
  bool make_way(std::size_t index);
  bool start(Sequence& sequence);
  std::int32_t chunk_of(const Sequence& sequence) const;
  void schedule(std::size_t index, Step& step);
  bool make_room(std::size_t index, std::int64_t end);
  struct Need {
    std::size_t slots = 0;
    std::int64_t blocks = 0;
    bool commitments = false;  ///< blocks that a victim lacks count as well
    int below_priority = std::numeric_limits<int>::max();
  };
  bool preempt_behind(std::size_t index, const Need& need);
  void preempt(Sequence& victim);
  bool cheaper_to_save(const Sequence& sequence) const;
  void enter(Sequence& sequence);
  void leave(Sequence& sequence, Sequence::Stage stage);

  SchedulerOptions options_;
  cache::PrefixCache& cache_;
  SpeculationPolicy* policy_;
  std::vector<DraftView> views_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // in line
  std::int32_t running_ = 0;
  std::uint64_t running_requests_ = 0;
  std::size_t finished_ = 0;
  std::uint64_t plans_ = 0;
  std::int32_t budget_ =
      0;  // rows left in the step being planned, without one for each running sequence to come
  // Whoever was refused need not be looked at again before blocks or slots come free or prefixes get longer.
  std::uint64_t epoch_ = 1;
  std::uint64_t refused_ = 0;
  std::uint64_t refused_epoch_ = 0;
  double seconds_per_row_ = 0;
  SchedulerStatistics statistics_;
};

}  // namespace thalweg::engine
