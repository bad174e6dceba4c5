#include "engine/sampling/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "engine/sampling/gumbel.hpp"
#include "sampling_rows.hpp"

namespace thalweg::engine {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::int32_t vocab_of(const std::vector<float>& row) {
  return static_cast<std::int32_t>(row.size());
}

std::int32_t sample(const std::vector<float>& row, const SamplingParams& params, std::uint64_t seed,
                    const RowContext& context = {}, std::int32_t eos = -1) {
  SamplerScratch scratch(vocab_of(row));
  return Sampler(params, seed, vocab_of(row), eos).sample(row, context, scratch);
}

/// The definition: every token's score, the largest wins, ties to the lower id.
std::int32_t winner_by_definition(const std::vector<float>& row, double temperature, std::uint64_t seed,
                                  std::int64_t position) {
  std::int32_t winner = -1;
  double best = -std::numeric_limits<double>::infinity();
  for (std::int32_t token = 0; token < vocab_of(row); ++token) {
    const double score =
        row[static_cast<std::size_t>(token)] / temperature + gumbel_noise(seed, position, token);
    if (score <= best) continue;
    best = score;
    winner = token;
  }
  return winner;
}

TEST(Sampler, GreedyIsArgmaxWithTiesToTheLowerId) {
  SamplingParams greedy;
  greedy.temperature = 0;
  EXPECT_EQ(sample({1, 5, 2, 5, 5}, greedy, 1), 1);
  EXPECT_EQ(sample({-0.0F, 0.0F}, greedy, 1), 0);
  EXPECT_EQ(sample({-infinity, -7}, greedy, 1), 1);
  greedy.top_k = 3;
  greedy.top_p = 0.1;
  EXPECT_EQ(sample({1, 5, 2, 5, 5}, greedy, 1), 1);
}

TEST(Sampler, TheBoundsThatSkipTokensNeverChangeTheWinner) {
  std::mt19937_64 random(41);
  for (int round = 0; round < 2000; ++round) {
    const std::size_t size = 1 + testing::below(random, 400);
    const std::vector<float> row = round % 2 == 0
                                       ? testing::random_row(random, size, 8 * testing::uniform(random))
                                       : testing::row_with_ties(random, size, 8 * testing::uniform(random));
    SamplingParams params;
    params.temperature = std::exp2(-6 + 7 * testing::uniform(random));
    const std::uint64_t seed = random();
    ASSERT_EQ(sample(row, params, seed, {.position = round}),
              winner_by_definition(row, params.temperature, seed, round))
        << round;
  }
}

/// Pearson's statistic over tokens expected at least five times.
double chi_square(const std::map<std::int32_t, int>& seen, const std::vector<double>& probabilities,
                  int draws) {
  double statistic = 0;
  for (std::size_t token = 0; token < probabilities.size(); ++token) {
    const auto found = seen.find(static_cast<std::int32_t>(token));
    const double count = found == seen.end() ? 0 : found->second;
    const double expected = probabilities[token] * draws;
    if (expected >= 5) statistic += (count - expected) * (count - expected) / expected;
  }
  return statistic;
}

TEST(Sampler, DrawsAreDistributedAsTheSoftmaxAlongPositionsAndAlongSeeds) {
  constexpr int draws = 20000;
  std::mt19937_64 random(42);
  for (const double temperature : {0.3, 1.0, 2.0}) {
    const std::vector<float> row = testing::random_row(random, 12, 1.5);
    std::vector<double> probabilities;
    double total = 0;
    for (const float logit : row) total += std::exp(logit / temperature);
    for (const float logit : row) probabilities.push_back(std::exp(logit / temperature) / total);
    SamplingParams params;
    params.temperature = temperature;
    const Sampler sampler(params, 1234, 12, -1);
    SamplerScratch scratch(12);
    std::map<std::int32_t, int> by_position;
    std::map<std::int32_t, int> by_seed;
    for (int i = 0; i < draws; ++i) {
      ++by_position[sampler.sample(row, {.position = i}, scratch)];
      ++by_seed[sample(row, params, static_cast<std::uint64_t>(i), {.position = 7})];
    }
    // 11 degrees of freedom: 36 is passed once in 5000 honest experiments, and the seeds are fixed.
    EXPECT_LT(chi_square(by_position, probabilities, draws), 36) << temperature;
    EXPECT_LT(chi_square(by_seed, probabilities, draws), 36) << temperature;
  }
}

TEST(Sampler, RemovingATokenThatDidNotWinDoesNotChangeTheWinner) {
  std::mt19937_64 random(43);
  SamplingParams params;
  for (int round = 0; round < 200; ++round) {
    const std::vector<float> row = testing::random_row(random, 20, 2);
    const std::uint64_t seed = random();
    const std::int32_t winner = sample(row, params, seed, {.position = round});
    for (std::size_t removed = 0; removed < row.size(); ++removed) {
      if (static_cast<std::int32_t>(removed) == winner) continue;
      std::vector<float> fewer = row;
      fewer[removed] = -infinity;
      ASSERT_EQ(sample(fewer, params, seed, {.position = round}), winner);
    }
  }
}

TEST(Sampler, AStricterFilterThatKeepsTheWinnerKeepsTheDraw) {
  std::mt19937_64 random(44);
  for (int round = 0; round < 200; ++round) {
    const std::vector<float> row = testing::random_row(random, 50, 2);
    const std::uint64_t seed = random();
    SamplingParams params;
    const std::int32_t winner = sample(row, params, seed);
    const auto better = std::count_if(row.begin(), row.end(),
                                      [&](float l) { return l > row[static_cast<std::size_t>(winner)]; });
    for (std::int32_t k = static_cast<std::int32_t>(better) + 1; k <= 50; ++k) {
      params.top_k = k;
      ASSERT_EQ(sample(row, params, seed), winner);
    }
  }
}

TEST(Sampler, TokensDependOnNoOtherRowAndNoOrder) {
  std::mt19937_64 random(45);
  SamplingParams params;
  params.top_p = 0.95;
  params.top_k = 40;
  const Sampler sampler(params, 77, 300, -1);
  SamplerScratch scratch(300);
  std::vector<std::vector<float>> rows;
  std::vector<std::int32_t> alone;
  for (int i = 0; i < 50; ++i) {
    rows.push_back(testing::random_row(random, 300, 3));
    SamplerScratch fresh(300);
    alone.push_back(sampler.sample(rows.back(), {.position = i}, fresh));
  }
  for (int i = 49; i >= 0; --i) {
    const auto row = static_cast<std::size_t>(i);
    EXPECT_EQ(sampler.sample(rows[row], {.position = i}, scratch), alone[row]);
  }
}

TEST(Sampler, OperationsHaveTheDocumentedOrder) {
  // Token 0 leads until its presence penalty; token 1 until its ban; token 2 wins by bias over token 3.
  SamplingParams params;
  params.temperature = 0;
  params.presence_penalty = 2;
  params.logit_bias = {{2, 1.5F}};
  params.banned_tokens = {1};
  TokenCounts counts;
  counts.append(0);
  const RowContext context{.position = 1, .output_length = 1, .counts = &counts};
  EXPECT_EQ(sample({3, 2.9F, 1, 2}, params, 1, context), 2);
}

TEST(Sampler, OnlyAllowedAndNotBannedTokensAreProduced) {
  SamplingParams params;
  params.allowed_tokens = {3, 40, 63, 64};
  params.banned_tokens = {40};
  const std::vector<float> row(70, 0.0F);
  std::set<std::int32_t> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) seen.insert(sample(row, params, seed));
  EXPECT_EQ(seen, (std::set<std::int32_t>{3, 63, 64}));
}

TEST(Sampler, GrammarMaskIsReadAsLittleEndianBitsOfWords) {
  const std::vector<float> row(70, 0.0F);
  const std::vector<std::uint32_t> mask = {0x80000001, 0, 0xFFFFFFE0};
  std::set<std::int32_t> seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) seen.insert(sample(row, {}, seed, {.allowed = mask}));
  EXPECT_EQ(seen, (std::set<std::int32_t>{0, 31, 69}));
}

TEST(Sampler, EndTokensAreBannedUntilMinTokens) {
  SamplingParams params;
  params.temperature = 0;
  params.min_tokens = 2;
  params.stop_tokens = {3};
  const std::vector<float> row = {0, 9, 1, 8};
  EXPECT_EQ(sample(row, params, 1, {.output_length = 0}, 1), 2);
  EXPECT_EQ(sample(row, params, 1, {.output_length = 1}, 1), 2);
  EXPECT_EQ(sample(row, params, 1, {.output_length = 2}, 1), 1);
  params.ignore_eos = true;
  EXPECT_EQ(sample(row, params, 1, {.output_length = 0}, 1), 1);
}

TEST(Sampler, EverythingMaskedIsAnErrorAndNeverTokenZero) {
  const std::vector<float> row(40, 0.0F);
  const std::vector<std::uint32_t> nothing(2, 0);
  EXPECT_THROW(sample(row, {}, 1, {.allowed = nothing}), NoTokenAllowed);
  SamplingParams greedy;
  greedy.temperature = 0;
  EXPECT_THROW(sample(row, greedy, 1, {.allowed = nothing}), NoTokenAllowed);
  SamplingParams only_eos;
  only_eos.allowed_tokens = {5};
  only_eos.min_tokens = 1;
  EXPECT_THROW(sample(row, only_eos, 1, {}, 5), NoTokenAllowed);
}

TEST(Sampler, BrokenRowsAreRefused) {
  std::vector<float> row(40, 0.0F);
  row[17] = std::nanf("");
  EXPECT_THROW(sample(row, {}, 1), WorkError);
  row[17] = infinity;
  EXPECT_THROW(sample(row, {}, 1), WorkError);
  try {
    sample(row, {}, 1);
  } catch (const WorkError& error) {
    EXPECT_STREQ(error.what(), "logits: token 17: expected a finite number or -inf, found inf");
  }
}

TEST(Sampler, InputsThatDoNotFitAreRefused) {
  const std::vector<float> row(40, 0.0F);
  SamplerScratch scratch(40);
  const Sampler sampler({}, 1, 40, -1);
  EXPECT_THROW(sampler.sample(std::vector<float>(39), {}, scratch), InputError);
  const std::vector<std::uint32_t> short_mask(1, ~std::uint32_t{0});
  EXPECT_THROW(sampler.sample(row, {.allowed = short_mask}, scratch), InputError);
  SamplingParams penalties;
  penalties.frequency_penalty = 1;
  EXPECT_THROW(sample(row, penalties, 1), InputError);
  EXPECT_THROW(Sampler({}, 1, 40, 40), InputError);
  SamplingParams bad;
  bad.top_p = 0;
  EXPECT_THROW(Sampler(bad, 1, 40, -1), InputError);
}

TEST(Sampler, AheadOfTimeWithRolledBackCountsEqualsTokenByToken) {
  std::mt19937_64 random(46);
  SamplingParams params;
  params.frequency_penalty = 1;
  params.repetition_penalty = 1.3;
  const Sampler sampler(params, 9, 30, -1);
  SamplerScratch scratch(30);
  TokenCounts plain(std::vector<std::int32_t>{1, 2, 3});
  TokenCounts speculative = plain;
  for (std::int64_t position = 3; position < 60; ++position) {
    const std::vector<float> row = testing::random_row(random, 30, 2);
    // A wrong draft goes in and comes out again.
    speculative.append(static_cast<std::int32_t>(testing::below(random, 30)));
    speculative.append(static_cast<std::int32_t>(testing::below(random, 30)));
    speculative.rollback(2);
    const std::int32_t token = sampler.sample(row, {.position = position, .counts = &plain}, scratch);
    ASSERT_EQ(sampler.sample(row, {.position = position, .counts = &speculative}, scratch), token);
    plain.append(token);
    speculative.append(token);
  }
}

TEST(Sampler, TheSmallestTemperatureIsGreedyButForExactTies) {
  SamplingParams params;
  params.temperature = std::numeric_limits<float>::min();
  std::set<std::int32_t> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    seen.insert(sample({3e38F, 1, -3e38F, 2.9e38F}, params, seed));
  EXPECT_EQ(seen, (std::set<std::int32_t>{0}));
}

}  // namespace
}  // namespace thalweg::engine
