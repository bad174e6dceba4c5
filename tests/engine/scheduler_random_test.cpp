// Random loads against scheduler and prefix cache on a simulated device: whatever comes when, and whoever
// gives way or leaves, every rule of scheduling holds at every step and every answer is the one that its
// prompt and seed demand.
#include <random>

#include "simulated_engine.hpp"

namespace thalweg::engine {
namespace {

using simulated::kBlock;
using simulated::kLeastKeep;
using simulated::World;

constexpr std::size_t kMuch = 1 << 20;

// A few prompts that share beginnings; the rest of each is its own.
simulated::Wish random_wish(std::mt19937_64& random, std::int64_t context) {
  const auto below = [&](std::int64_t bound) { return static_cast<std::int64_t>(random() % bound); };
  simulated::Wish wish;
  const std::int64_t length =
      1 + (below(4) == 0 ? below(context) : below(std::min<std::int64_t>(context, 3 * kBlock)));
  const std::int64_t shared = below(4) == 0 ? 0 : below(length + 1);
  const std::int64_t family = below(3);
  for (std::int64_t p = 0; p < length; ++p) {
    const bool own = p >= shared;
    wish.prompt.push_back(static_cast<std::int32_t>(1 + (own ? below(6) : (p * 7 + family * 13) % 30)));
  }
  wish.max_tokens = 1 + below(below(5) == 0 ? 60 : 12);
  wish.priority = below(6) == 0 ? static_cast<int>(1 + below(2)) : 0;
  wish.n = below(8) == 0 ? static_cast<std::int32_t>(2 + below(3)) : 1;
  wish.salt = below(5) == 0 ? "another tenant" : "";
  wish.seed = random();
  return wish;
}

struct Met {
  std::uint64_t saved = 0;
  std::uint64_t dropped = 0;
  std::uint64_t hits = 0;
  std::uint64_t from_host = 0;
  std::uint64_t finished = 0;
  std::uint64_t aborted = 0;
};

void play(const World& world, std::uint64_t seed, std::int64_t steps, Met& met) {
  SCOPED_TRACE(std::string(world.name) + ", seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  simulated::Engine engine(world);
  std::uint64_t newest = 0;
  std::uint64_t lulls = 0;
  while (engine.steps() < steps && !::testing::Test::HasFailure()) {
    SCOPED_TRACE("step " + std::to_string(engine.steps()));
    if (random() % 400 == 0) lulls = 1 + random() % 60;  // lets the line run dry
    const std::size_t crowd = engine.scheduler().sequences().size();
    if (lulls > 0) {
      --lulls;
    } else if (crowd < 3 * static_cast<std::size_t>(world.sequences) + 4 && random() % 3 == 0) {
      newest = engine.submit(random_wish(random, engine.context()));
    }
    if (newest > 0 && random() % 12 == 0) {
      if (engine.abort(newest - std::min<std::uint64_t>(newest - 1, random() % 12))) ++met.aborted;
    }
    engine.turn();
    if (engine.steps() % 64 == 0) engine.cache().check_invariants();
  }
  engine.drain();
  met.saved += engine.scheduler().statistics().preempted_saved;
  met.dropped += engine.scheduler().statistics().preempted_dropped;
  met.finished += engine.finished();
  const cache::CacheStatistics cache = engine.cache().statistics();
  met.hits += cache.reused_tokens;
  met.from_host += cache.reused_from_host;
}

const std::vector<World> kWorlds = {
    {"roomy", 200, 8, 8, 64, kMuch, 0, true, false},
    {"roomy, synchronous", 200, 8, 8, 64, kMuch, 0, false, false},
    {"tight", 12, 4, 3, 9, kMuch, 0, true, false},
    {"tight, synchronous", 12, 4, 3, 9, kMuch, 0, false, false},
    {"tight, no host memory", 12, 4, 3, 9, 0, 0, true, false},
    {"tight, slow copies", 12, 4, 3, 9, kMuch, 0, true, true},
    {"little host memory", 10, 4, 2, 16, 700, 0, true, false},
    {"no snapshots", 12, 5, 0, 12, kMuch, 0, true, false},
    {"one sequence", 8, 1, 2, 5, kMuch, 0, true, false},
    {"three blocks", 3, 3, 2, 4, 0, 0, true, false},
    {"one row a step beside", 16, 6, 4, 7, kMuch, 0, true, true},
    {"replay", 14, 4, 4, 11, kMuch, kLeastKeep, true, false},
    {"replay, synchronous", 14, 4, 4, 11, kMuch, kLeastKeep + 3, false, false},
    {"replay, dropping", 10, 4, 3, 11, 0, kLeastKeep, true, true},
};

class RandomLoad : public ::testing::TestWithParam<World> {};

TEST_P(RandomLoad, KeepsEveryRuleAndEveryAnswer) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::int64_t kSteps = 500;
#else
  constexpr std::int64_t kSteps = 4000;
#endif
  Met met;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) play(GetParam(), seed, kSteps, met);
  EXPECT_GT(met.finished, 40U);
  EXPECT_GT(met.aborted, 10U);
  const bool tight = GetParam().blocks <= 16 && GetParam().sequences > 1;
  EXPECT_TRUE(!tight || met.saved + met.dropped > 0) << "the load never ran out of blocks";
  EXPECT_TRUE(GetParam().snapshots == 0 || met.hits > 0) << "nothing was ever reused";
}

INSTANTIATE_TEST_SUITE_P(Worlds, RandomLoad, ::testing::ValuesIn(kWorlds), [](const auto& test) {
  std::string name = test.param.name;
  std::erase_if(name, [](char c) { return c == ','; });
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

// For long runs by hand: --gtest_also_run_disabled_tests --gtest_filter='*ManySeeds*'
TEST(RandomLoadLong, DISABLED_ManySeeds) {
  Met met;
  for (std::uint64_t seed = 100; seed < 200 && !HasFailure(); ++seed) {
    for (const World& world : kWorlds) play(world, seed, 5000, met);
  }
}

}  // namespace
}  // namespace thalweg::engine
