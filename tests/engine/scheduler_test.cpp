// What the scheduler promises, case by case, on a simulated device. The reference's four faults (a leak, a
// deadlock, an eviction without need, an eviction/prefill ping-pong) each have their test.
#include <numeric>

#include "simulated_engine.hpp"

namespace thalweg::engine {
namespace {

using simulated::kBlock;
using simulated::World;

constexpr std::size_t kMuch = 1 << 20;

simulated::Wish wish(std::int64_t prompt, std::int64_t max_tokens, std::int32_t first = 1) {
  simulated::Wish wish;
  for (std::int64_t i = 0; i < prompt; ++i)
    wish.prompt.push_back(1 + static_cast<std::int32_t>((first + i) % 39));
  wish.max_tokens = max_tokens;
  // A seed under which no answer ends by itself within the lengths used here.
  wish.seed = 7;
  return wish;
}

const Sequence* find(simulated::Engine& engine, std::uint64_t request) {
  for (const auto& sequence : engine.scheduler().sequences()) {
    if (sequence->active->id == request) return sequence.get();
  }
  return nullptr;
}

bool is_running(simulated::Engine& engine, std::uint64_t request) {
  const Sequence* sequence = find(engine, request);
  return sequence != nullptr && sequence->stage == Sequence::Stage::running;
}

// The reference keeps 5 blocks and 1 slot of a 40-token prompt that is aborted between two chunks.
TEST(Scheduler, AbortedHalfPrefilledRequestGivesBlocksAndSlotBack) {
  const World world{"", 12, 2, 0, 16, 0};
  simulated::Engine engine(world);
  const std::uint64_t request = engine.submit(wish(40, 5));
  engine.turn();
  ASSERT_TRUE(is_running(engine, request));
  ASSERT_LT(find(engine, request)->computed, 40);
  EXPECT_LT(engine.cache().available_blocks(), 12U);
  engine.abort(request);
  EXPECT_EQ(engine.cache().available_blocks(), 12U);
  engine.drain();
}

// The reference asks a watermark of free blocks also of prompts that are half computed, and waits for ever.
TEST(Scheduler, HalfPrefilledPromptsThatFillThePoolGoOn) {
  const World world{"", 10, 4, 0, 8, 0};
  simulated::Engine engine(world);
  const std::uint64_t answering = engine.submit(wish(4, 12, 20));
  engine.turn();
  for (std::int32_t i = 0; i < 3; ++i) engine.submit(wish(30, 9, 3 * i));
  ASSERT_TRUE(is_running(engine, answering));
  engine.drain();
  EXPECT_EQ(engine.finished(), 4U);
}

// The reference asks for a free block of everybody who decodes, needed or not.
TEST(Scheduler, RequestsThatFillThePoolExactlyAreNotPreempted) {
  const World world{"", 4, 2, 0, 16, kMuch};
  simulated::Engine engine(world);
  engine.submit(wish(4, 5, 0));
  engine.submit(wish(4, 5, 20));
  engine.drain();
  EXPECT_EQ(engine.preempted(), 0U);
}

TEST(Scheduler, LoneRequestThatFillsThePoolIsNotPreempted) {
  const World world{"", 4, 2, 0, 8, kMuch};
  simulated::Engine engine(world);
  engine.submit(wish(9, 100));
  engine.drain();
  EXPECT_EQ(engine.preempted(), 0U);
}

// The reference evicts, prefills the evicted again at once, and evicts the other: one token a prefill.
TEST(Scheduler, PreemptedRequestComesBackOnlyWhenItsBlocksCanBeHad) {
  for (const bool dropped : {false, true}) {
    const World world{"", 9, 2, 0, 32, dropped ? 0 : kMuch};
    simulated::Engine engine(world);
    engine.submit(wish(15, 20, 0));
    engine.submit(wish(15, 20, 20));
    engine.drain();
    EXPECT_EQ(engine.preempted(), 1U);
    // Each row once, and what was dropped once more.
    const std::uint64_t once = 2 * (15 + 19);
    EXPECT_LE(engine.device().rows(), once + engine.scheduler().statistics().recomputed_tokens + 2);
  }
}

TEST(Scheduler, AdmitsAPromptOnlyWhenAllItsBlocksCanBeHadBesideWhatOthersLack) {
  const World world{"", 10, 4, 0, 6, kMuch};
  simulated::Engine engine(world);
  const std::uint64_t first = engine.submit(wish(28, 2, 0));  // 7 blocks, computed in many steps
  const std::uint64_t second = engine.submit(wish(20, 2, 11));
  engine.turn();
  EXPECT_TRUE(is_running(engine, first));
  EXPECT_FALSE(is_running(engine, second));
  engine.drain();
  EXPECT_EQ(engine.preempted(), 0U);
}

TEST(Scheduler, SharedPrefixIsCountedOnce) {
  const World world{"", 12, 3, 4, 64, kMuch};
  simulated::Engine engine(world);
  simulated::Wish common = wish(33, 4);
  const std::uint64_t first = engine.submit(common);
  while (find(engine, first)->computed < 33) engine.turn();
  common.prompt.push_back(5);
  const std::uint64_t second = engine.submit(common);  // 9 blocks of 12; 8 of them the first one has
  engine.turn();
  EXPECT_TRUE(is_running(engine, first));
  EXPECT_TRUE(is_running(engine, second));
  engine.drain();
  EXPECT_EQ(engine.preempted(), 0U);
}

TEST(Scheduler, EqualPromptsComputedTogetherKeepOneCopyOfTheirBlocks) {
  const World world{"", 20, 2, 4, 64, kMuch};
  simulated::Engine engine(world);
  engine.submit(wish(24, 6));
  engine.submit(wish(24, 6));
  engine.turn();
  engine.turn();
  EXPECT_LE(20 - engine.cache().available_blocks(), 6U + 2U + 2U)
      << "6 shared, a tail each, and partly filled ones";
  engine.drain();
}

TEST(Scheduler, HigherPriorityTakesTheSlotOfALowerOneAndEqualPriorityWaits) {
  const World world{"", 30, 1, 0, 16, kMuch};
  simulated::Engine engine(world);
  const std::uint64_t low = engine.submit(wish(5, 20, 0));
  engine.turn();
  const std::uint64_t equal = engine.submit(wish(5, 3, 10));
  engine.turn();
  EXPECT_TRUE(is_running(engine, low));
  EXPECT_FALSE(is_running(engine, equal));
  simulated::Wish urgent = wish(5, 3, 20);
  urgent.priority = 1;
  const std::uint64_t high = engine.submit(urgent);
  engine.turn();
  EXPECT_TRUE(is_running(engine, high));
  EXPECT_FALSE(is_running(engine, low));
  EXPECT_EQ(engine.preempted(), 1U);
  engine.drain();
}

TEST(Scheduler, NobodyGivesWayToAHigherPriorityThatCouldStillNotRun) {
  const World world{"", 10, 3, 0, 16, kMuch};
  simulated::Engine engine(world);
  simulated::Wish urgent = wish(23, 8, 0);
  urgent.priority = 1;
  engine.submit(urgent);
  const std::uint64_t low = engine.submit(wish(6, 20, 12));
  engine.turn();
  engine.turn();
  ASSERT_TRUE(is_running(engine, low));
  urgent = wish(30, 4, 25);  // 8 blocks; the first urgent one has 6 of 10
  urgent.priority = 1;
  engine.submit(urgent);
  engine.turn();
  EXPECT_TRUE(is_running(engine, low));
  EXPECT_EQ(engine.preempted(), 0U);
  engine.drain();
}

// The bound: a level of priority is worth kPriorityHeadStart steps, so a stream of urgent requests passes a
// patient one for so long and no longer.
TEST(Scheduler, StreamOfHigherPriorityCannotStarveALowerOne) {
  const World world{"", 30, 1, 0, 16, kMuch};
  simulated::Engine engine(world);
  const std::uint64_t patient = engine.submit(wish(5, 1, 0));
  simulated::Wish urgent = wish(3, 4, 10);
  urgent.priority = 1;
  urgent.salt = "x";
  engine.submit(urgent);
  const auto waiting = [&] { return find(engine, patient) != nullptr; };
  std::size_t queued = 1;
  while (waiting() && engine.steps() < 3 * kPriorityHeadStart) {
    if (engine.scheduler().sequences().size() < 4) {
      engine.submit(urgent);
      ++queued;
    }
    engine.turn();
  }
  EXPECT_FALSE(waiting());
  EXPECT_GT(queued, 100U);
  EXPECT_LE(engine.steps(), kPriorityHeadStart + 30);
  engine.drain();
}

TEST(Scheduler, StepsNeverHaveMoreRowsThanTheBudgetAndPromptsTakeWhatDecodesLeave) {
  const World world{"", 60, 5, 0, 8, kMuch};
  simulated::Engine engine(world);
  for (std::int32_t i = 0; i < 4; ++i) engine.submit(wish(2, 30, 9 * i));
  for (int i = 0; i < 3; ++i) engine.turn();
  const std::uint64_t before = engine.device().rows();
  engine.submit(wish(40, 2, 5));
  engine.turn();
  EXPECT_EQ(engine.device().rows() - before, 8U) << "four tokens and four rows of the prompt";
  engine.drain();
}

// Asynchronous: the step after a token is planned before its value is known, every time.
TEST(Scheduler, PlansEveryStepWithoutWaitingForTheTokensOfTheOneBefore) {
  const World world{"", 20, 2, 0, 16, kMuch};
  simulated::Engine engine(world);
  const std::uint64_t request = engine.submit(wish(5, 20));
  engine.turn();
  for (int i = 0; i < 15; ++i) {
    const std::uint64_t before = engine.device().rows();
    engine.turn();
    EXPECT_EQ(engine.device().rows() - before, 1U) << "turn " << i << " launched nothing";
  }
  ASSERT_NE(find(engine, request), nullptr);
  engine.drain();
}

TEST(Scheduler, AnswersToOnePromptComputeItOnce) {
  const World world{"", 60, 5, 4, 64, kMuch};
  simulated::Engine engine(world);
  simulated::Wish four = wish(31, 6);
  four.n = 4;
  engine.submit(four);
  engine.drain();
  // The prompt, its last token three times more, and five tokens of each answer (the sixth needs no row).
  EXPECT_LE(engine.device().rows(), 31U + 3 + 4 * 5);
}

TEST(Scheduler, AnswersGoOnWhenTheFirstOneIsAbortedDuringThePrompt) {
  const World world{"", 60, 5, 4, 8, kMuch};
  simulated::Engine engine(world);
  simulated::Wish two = wish(31, 4);
  two.n = 2;
  engine.submit(two);
  engine.turn();
  engine.scheduler().finish(*engine.scheduler().sequences().front(), false);
  while (engine.turn()) {
  }
  engine.scheduler().collect();
  EXPECT_TRUE(engine.scheduler().sequences().empty());
}

// A sequence that was dropped while answering runs through its prompt again; what is published of the prompt
// then must be the windows of its end, not later ones.
TEST(Scheduler, PromptCanBeResumedAfterARecomputationPassedIt) {
  const World world{"", 9, 2, 2, 64, 0};
  simulated::Engine engine(world);
  const simulated::Wish first = wish(13, 22, 0);
  engine.submit(first);
  engine.submit(wish(13, 22, 20));
  engine.drain();
  EXPECT_GT(engine.scheduler().statistics().preempted_dropped, 0U);
  engine.submit(first);
  engine.submit(wish(13, 22, 20));
  engine.drain();
}

// In replay mode decoder windows begin at a fixed distance from the prompt's end, whatever has been answered
// since.
TEST(Scheduler, ReplayedSequenceThatComesBackLaterStillBeginsWhereItsPromptDemands) {
  const World world{"", 9, 2, 4, 64, 0, simulated::kLeastKeep};
  simulated::Engine engine(world);
  engine.submit(wish(14, 20, 0));
  engine.submit(wish(14, 20, 20));
  engine.drain();
  EXPECT_GT(engine.scheduler().statistics().preempted_dropped, 0U);
}

}  // namespace
}  // namespace thalweg::engine
