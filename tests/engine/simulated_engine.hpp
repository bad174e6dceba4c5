// The engine's loop around scheduler and prefix cache, on a simulated device, with every rule of scheduling
// checked at every step.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler.hpp"
#include "simulated_device.hpp"

namespace thalweg::engine::simulated {

struct World {
  const char* name = "";
  std::int64_t blocks = 0;  ///< the reserved one not counted
  std::int32_t sequences = 0;
  std::int32_t snapshots = 0;
  std::int32_t batch_tokens = 0;
  std::size_t host_bytes = 0;
  std::int64_t keep = 0;  ///< > 0: replay mode
  bool asynchronous = true;
  bool slow_copies = false;  ///< preempted sequences are dropped rather than saved
};

/// Least tokens that replay keeps.
constexpr std::int64_t kLeastKeep = kWindow + 2;

inline void PrintTo(const World& world, std::ostream* out) {
  *out << world.name;
}

struct Wish {
  std::vector<std::int32_t> prompt;
  std::int64_t max_tokens = 8;
  int priority = 0;
  std::int32_t n = 1;
  std::string salt;
  std::uint64_t seed = 1;
};

class Engine {
 public:
  explicit Engine(const World& world)
      : world_(world),
        device_(static_cast<std::uint32_t>(world.blocks + 1),
                static_cast<std::uint32_t>(world.sequences + world.snapshots + 1)),
        cache_(cache_config(world), device_),
        scheduler_(scheduler_options(world), cache_, nullptr) {}

  std::int64_t context() const { return world_.blocks * kBlock; }

  std::uint64_t submit(const Wish& wish) {
    auto active = std::make_shared<ActiveRequest>();
    const auto length = static_cast<std::int64_t>(wish.prompt.size());
    active->id = ++requests_;
    active->request.prompt = wish.prompt;
    active->request.cache_salt = wish.salt;
    active->request.priority = wish.priority;
    active->rank = step_ - wish.priority * kPriorityHeadStart;
    active->max_length = std::min(context() + 1, length + wish.max_tokens);
    active->last_resume = length;
    if (world_.keep > 0) {
      active->decoder_floor = std::max<std::int64_t>(0, length - world_.keep);
      active->last_resume = active->decoder_floor;
    }
    active->open_choices = wish.n;
    for (std::int32_t choice = 0; choice < wish.n; ++choice) {
      auto sequence = std::make_unique<Sequence>();
      sequence->id = ++sequences_;
      sequence->active = active;
      sequence->choice = choice;
      sequence->tokens = wish.prompt;
      sequence->prompt_length = length;
      const std::uint64_t seed = mix(wish.seed, static_cast<std::uint64_t>(choice));
      sequence->sampling = std::make_shared<SamplingState>(Sampler({}, seed, kVocab, kEnd),
                                                           std::span<const std::int32_t>(), 0);
      expected_[sequence->id] = expected_answer(wish.prompt, seed, active->max_length, active->decoder_floor);
      scheduler_.add(std::move(sequence));
    }
    return active->id;
  }

  /// Ends a request wherever it is; false if there is none any more.
  bool abort(std::uint64_t request) {
    bool any = false;
    for (const auto& sequence : scheduler_.sequences()) {
      if (sequence->active->id != request || sequence->stage == Sequence::Stage::finished) continue;
      scheduler_.finish(*sequence, false);
      any = true;
    }
    if (any) ++aborted_;
    return any;
  }

  /// One turn of the loop. False: there was nothing to do.
  bool turn() {
    scheduler_.collect();
    Step& next = steps_[launches_ % 2];
    before_plan();
    const bool planned = scheduler_.plan(next);
    after_plan(next, planned);
    if (planned) {
      device_.run(next);
      scheduler_.launched(next);
      scheduler_.learn_cost(1, 1e-6);
      ++launches_;
    }
    const bool worked = planned || flying_ != nullptr;
    if (flying_ != nullptr) process(*flying_);
    flying_ = planned ? &next : nullptr;
    if (flying_ != nullptr && !world_.asynchronous) process(*std::exchange(flying_, nullptr));
    ++step_;
    return worked;
  }

  /// Until nothing is left to do.
  void drain() {
    while (!::testing::Test::HasFailure() && turn()) {
    }
    scheduler_.collect();
    EXPECT_TRUE(scheduler_.sequences().empty()) << "a request was never served";
    EXPECT_EQ(scheduler_.running(), 0);
    EXPECT_EQ(scheduler_.running_requests(), 0U);
    EXPECT_EQ(cache_.available_blocks(), static_cast<std::uint32_t>(world_.blocks)) << "blocks were lost";
    cache_.check_invariants();
    EXPECT_EQ(requests_, finished_ + aborted_) << "a request vanished";
  }

  Scheduler& scheduler() { return scheduler_; }
  cache::PrefixCache& cache() { return cache_; }
  const Device& device() const { return device_; }
  std::int64_t steps() const { return step_; }
  std::uint64_t preempted() const {
    return scheduler_.statistics().preempted_saved + scheduler_.statistics().preempted_dropped;
  }
  std::uint64_t finished() const { return finished_; }

 private:
  static cache::CacheConfig cache_config(const World& world) {
    cache::CacheConfig config;
    config.geometry = geometry();
    config.name.model = "simulated";
    config.name.format = "hash";
    config.name.mode = world.keep > 0 ? cache::ReuseMode::replay : cache::ReuseMode::exact;
    config.name.keep = static_cast<std::uint32_t>(world.keep);
    config.blocks = static_cast<std::uint32_t>(world.blocks + 1);
    config.slots = static_cast<std::uint32_t>(world.sequences + world.snapshots + 1);
    config.host_bytes = world.host_bytes;
    return config;
  }
  static SchedulerOptions scheduler_options(const World& world) {
    SchedulerOptions options;
    options.batch_tokens = world.batch_tokens;
    options.sequences = world.sequences;
    options.snapshot_every = 2 * kBlock;
    options.block_tokens = kBlock;
    options.context = world.blocks * kBlock;
    options.block_bytes = geometry().block_bytes;
    options.slot_bytes = geometry().slot_bytes();
    options.copy_bytes_per_second = world.slow_copies ? 1 : 1e12;
    return options;
  }

  void before_plan() {
    available_ = cache_.available_blocks();
    preempted_before_ = preempted();
    had_.clear();
    waiting_.clear();
    for (const auto& sequence : scheduler_.sequences()) {
      if (sequence->stage == Sequence::Stage::running) had_[sequence->id] = sequence->place.blocks().size();
      if (!sequence->active->prompt_counted) waiting_.insert(sequence->id);
    }
  }

  void after_plan(Step& step, bool planned) {
    EXPECT_LE(step.plan.tokens.size(), static_cast<std::size_t>(world_.batch_tokens)) << "the row budget";
    EXPECT_LE(scheduler_.running(), world_.sequences) << "the sequence budget";
    EXPECT_EQ(planned, !step.parts.empty());
    check_line(step);
    check_evictions(step, planned);
    check_writes(step);
  }

  // Who comes first is served first.
  void check_line(const Step& step) {
    bool first = true;
    std::uint64_t held_up = 0;
    std::int32_t unfinished = 0;
    for (const auto& sequence : scheduler_.sequences()) {
      if (sequence->stage == Sequence::Stage::finished) continue;
      ++unfinished;
      const bool sibling = sequence->choice > 0 && !sequence->active->prompt_counted;
      if (sequence->choice == 0 && !sequence->active->prompt_counted) held_up = sequence->id;
      if (sequence->choice == 0 && sequence->active->prompt_counted && waiting_.contains(sequence->id)) {
        EXPECT_EQ(held_up, 0U) << "one further back in line was admitted first";
      }
      const bool running = sequence->stage == Sequence::Stage::running;
      if (first && !sibling && (sequence->choice == 0 || running) && !sequence->full() &&
          sequence->rows_left() > 0) {
        const bool in_step = std::any_of(step.parts.begin(), step.parts.end(), [&](const StepPart& part) {
          return part.sequence == sequence.get();
        });
        EXPECT_TRUE(in_step) << "the first in line stands still";
      }
      first = false;
    }
    if (unfinished > 0 && flying_ == nullptr) {
      EXPECT_FALSE(step.parts.empty()) << "idle although there is work";
    }
  }

  // Nobody gives way unless blocks have run out, or to a higher priority; somebody gets on then.
  void check_evictions(const Step& step, bool planned) {
    if (preempted() == preempted_before_) return;
    EXPECT_TRUE(planned) << "an eviction, and nobody got on";
    std::size_t taken = 0;
    bool outranked = false;
    for (const StepPart& part : step.parts) {
      const auto had = had_.find(part.sequence->id);
      const std::size_t before = had == had_.end() ? 0 : had->second;
      taken += part.sequence->place.blocks().size() - std::min(before, part.sequence->place.blocks().size());
    }
    for (const auto& sequence : scheduler_.sequences()) {
      const bool admitted = sequence->stage == Sequence::Stage::running && !had_.contains(sequence->id);
      outranked = outranked || (admitted && sequence->active->request.priority > 0);
    }
    EXPECT_TRUE(outranked || taken > available_)
        << "an eviction without need: " << taken << " blocks taken, " << available_ << " could be had";
  }

  void check_writes(const Step& step) {
    for (const StepPart& part : step.parts) {
      const auto blocks = part.sequence->place.blocks();
      const std::int64_t end = part.first_position + part.rows;
      EXPECT_LE(end, static_cast<std::int64_t>(blocks.size()) * kBlock);
      for (std::int64_t b = part.first_position / kBlock; b * kBlock < end; ++b) {
        EXPECT_EQ(cache_.references(blocks[static_cast<std::size_t>(b)]), 1U)
            << "a shared block would be written";
      }
    }
  }

  void process(Step& step) {
    for (const StepPart& part : step.parts) {
      if (!scheduler_.landed(part) || part.sample < 0) continue;
      Sequence& sequence = *part.sequence;
      const std::int32_t token = step.samples[part.sample].tokens.front();
      sequence.tokens.push_back(token);
      if (token == kEnd || sequence.known() >= sequence.active->max_length) end(sequence);
    }
  }

  void end(Sequence& sequence) {
    const std::vector<std::int32_t> answer(sequence.tokens.begin() + sequence.prompt_length,
                                           sequence.tokens.end());
    EXPECT_EQ(answer, expected_[sequence.id]) << "the answer depends on how it was scheduled";
    const Usage& usage = sequence.active->usage;
    EXPECT_EQ(usage.prompt_tokens, sequence.prompt_length);
    EXPECT_EQ(usage.reused_tokens + usage.replayed_tokens + usage.computed_tokens, usage.prompt_tokens);
    expected_.erase(sequence.id);
    scheduler_.finish(sequence, true);
    if (--sequence.active->open_choices == 0) ++finished_;
  }

  World world_;
  Device device_;
  cache::PrefixCache cache_;
  Scheduler scheduler_;
  std::array<Step, 2> steps_;
  Step* flying_ = nullptr;
  std::size_t launches_ = 0;
  std::int64_t step_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t sequences_ = 0;
  std::uint64_t finished_ = 0;
  std::uint64_t aborted_ = 0;
  std::map<std::uint64_t, std::vector<std::int32_t>> expected_;  // by sequence
  std::uint32_t available_ = 0;
  std::uint64_t preempted_before_ = 0;
  std::map<std::uint64_t, std::size_t> had_;  // blocks of running sequences before the plan
  std::set<std::uint64_t> waiting_;           // never admitted before the plan
};

}  // namespace thalweg::engine::simulated
