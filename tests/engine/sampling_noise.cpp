#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>

#include "engine/sampling/gumbel.hpp"
#include "engine/sampling/philox.hpp"
#include "engine/sampling/portable_math.hpp"
#include "engine/sampling/sampler.hpp"
#include "sampling_rows.hpp"

namespace thalweg::engine {
namespace {

TEST(Philox, PublishedKnownAnswers) {
  constexpr std::uint32_t ones = 0xFFFFFFFF;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, AgreesWithCurandWhichPutsTheSequenceNumberInTheUpperHalfOfTheCounter) {
  struct Case {
    std::uint64_t seed;
    std::uint32_t sequence;
    PhiloxCounter words;
  };
  const Case cases[] = {
      {0, 0, {1713891541, 3781805453, 3159862348, 2600524760}},
      {42, 0, {2632642643, 2012563771, 314527917, 1463989207}},
      {42, 1, {43202409, 542238995, 996716600, 3056353436}},
      {42, 2, {1711173798, 2234407014, 1810832730, 2971527349}},
      {81985529216486895, 300, {2887741725, 3001161863, 4226812156, 3317936902}},
      {18446744073709551615U, 30000060, {1659077683, 2370959294, 3337826213, 1610753333}},
      {1000000007, 3, {2722412662, 861613311, 1902755033, 1958506679}},
  };
  for (const Case& c : cases) EXPECT_EQ(philox4x32({0, 0, c.sequence, 0}, philox_key(c.seed)), c.words);
}

TEST(PortableMath, LogarithmIsWithinItsErrorBoundAlsoNextToOne) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const double magnitude = std::exp2(testing::uniform(random) * 40 - 40);
    for (const double x : {magnitude, 1 - magnitude / 2, 1 + magnitude}) {
      const long double exact = std::log(static_cast<long double>(x));
      ASSERT_LE(std::abs(portable_log(x) - exact), 1e-15L * std::abs(exact)) << x;
    }
  }
  EXPECT_EQ(portable_log(1), 0);
}

TEST(PortableMath, ExponentialIsWithinItsErrorBound) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    const double x = testing::uniform(random) * 60 - 30;
    const long double exact = std::exp(static_cast<long double>(x));
    ASSERT_LE(std::abs(portable_exp(x) - exact), 1e-14L * exact) << x;
  }
  EXPECT_EQ(portable_exp(0), 1);
}

/// The expected bits were found by an independent implementation in another language.
TEST(PortableMath, TheBitsAreTheSameOnEveryPlatform) {
  std::uint64_t logs = 0;
  std::uint64_t exps = 0;
  std::uint64_t noise = 0;
  const auto mix = [](std::uint64_t sum, double x) {
    return (sum ^ std::bit_cast<std::uint64_t>(x)) * 0x9E3779B97F4A7C15 + 1;
  };
  for (std::uint32_t i = 0; i < 100000; ++i) {
    const std::uint32_t word = i * 42949;
    logs = mix(logs, portable_log((word + 0.5) * 0x1p-24));
    exps = mix(exps, portable_exp((word + 0.5) * -0x1p-27));
    noise = mix(noise, gumbel_of_word(word));
  }
  EXPECT_EQ(logs, 13669160690823605954U);
  EXPECT_EQ(exps, 13438250299688715812U);
  EXPECT_EQ(noise, 6513334811965614792U);
}

TEST(Gumbel, NoiseIsFiniteAtBothEndsAndRisesWithTheWord) {
  EXPECT_NEAR(gumbel_of_word(0), -3.1297, 1e-3);
  EXPECT_NEAR(gumbel_of_word(~std::uint32_t{0}), 22.8739, 1e-3);
  double last = -10;
  for (std::uint32_t step = 0; step < 65536; ++step) {
    const double noise = gumbel_of_word(step << 16);
    ASSERT_GT(noise, last);
    last = noise;
  }
}

TEST(Gumbel, TheBoundIsNeverBelowTheNoise) {
  std::mt19937_64 random(3);
  const auto check = [](std::uint32_t word) {
    ASSERT_GE(gumbel_bound(word), gumbel_of_word(word)) << word;
    ASSERT_LE(gumbel_bound(word), max_gumbel) << word;
  };
  for (int i = 0; i < 200000; ++i) check(static_cast<std::uint32_t>(random()));
  for (int bit = 0; bit < 32; ++bit) {
    const std::uint32_t power = std::uint32_t{1} << bit;
    for (const std::uint32_t word : {power, power - 1, ~power, ~(power - 1), ~(power - 1) - 1}) check(word);
  }
}

TEST(Gumbel, MeanAndVarianceAreThoseOfTheDistribution) {
  constexpr int count = 400000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < count; ++i) {
    const double noise = gumbel_noise(99, i / 1000, i % 1000);
    sum += noise;
    squares += noise * noise;
  }
  const double mean = sum / count;
  EXPECT_NEAR(mean, 0.5772, 0.01);
  EXPECT_NEAR(squares / count - mean * mean, 1.6449, 0.02);
}

TEST(Gumbel, SeedPositionAndTokenAllChangeTheNoise) {
  std::set<double> seen;
  for (std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
    for (std::int64_t position : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 32}) {
      for (std::int32_t token : {0, 1, 2, 3, 4, 129279}) seen.insert(gumbel_noise(seed, position, token));
    }
  }
  EXPECT_EQ(seen.size(), 3u * 3u * 6u);
}

TEST(ChoiceSeed, FirstChoiceHasTheRequestsSeedAndTheOthersDiffer) {
  EXPECT_EQ(choice_seed(7, 0), 7u);
  std::set<std::uint64_t> seeds;
  for (std::int32_t choice = 0; choice < 128; ++choice) seeds.insert(choice_seed(7, choice));
  EXPECT_EQ(seeds.size(), 128u);
}

}  // namespace
}  // namespace thalweg::engine
