#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "base/error.hpp"
#include "engine/sampling/logprobs.hpp"
#include "engine/sampling/sampler.hpp"
#include "sampling_rows.hpp"

namespace thalweg::engine {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

double exact_logprob(const std::vector<float>& row, std::size_t token, double temperature = 1) {
  long double sum = 0;
  for (const float logit : row) sum += std::exp((static_cast<long double>(logit) - row[token]) / temperature);
  return static_cast<double>(-std::log(sum));
}

std::vector<std::int32_t> tokens_of(const RowLogprobs& logprobs) {
  std::vector<std::int32_t> tokens;
  for (const TokenLogprob& entry : logprobs.top) tokens.push_back(entry.token);
  return tokens;
}

TEST(Logprobs, AreTheLogarithmsOfTheSoftmax) {
  std::mt19937_64 random(31);
  for (int round = 0; round < 200; ++round) {
    const std::vector<float> row = testing::random_row(random, 1 + testing::below(random, 500), 4);
    const std::size_t chosen = testing::below(random, row.size());
    RowLogprobs out;
    raw_logprobs(row, static_cast<std::int32_t>(chosen), 5, out);
    ASSERT_NEAR(out.chosen, exact_logprob(row, chosen), 1e-6 * (1 + std::abs(out.chosen)));
    for (const TokenLogprob& entry : out.top) {
      ASSERT_NEAR(entry.logprob, exact_logprob(row, static_cast<std::size_t>(entry.token)), 1e-5);
    }
  }
}

TEST(Logprobs, TopIsSortedWithTiesToTheLowerId) {
  std::mt19937_64 random(32);
  for (int round = 0; round < 300; ++round) {
    const std::vector<float> row = testing::row_with_ties(random, 1 + testing::below(random, 100), 1);
    std::vector<std::int32_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
      return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)];
    });
    const auto wanted = static_cast<std::int32_t>(testing::below(random, 120));
    order.resize(std::min<std::size_t>(order.size(), static_cast<std::size_t>(wanted)));
    RowLogprobs out;
    raw_logprobs(row, 0, wanted, out);
    ASSERT_EQ(tokens_of(out), order) << round;
  }
}

TEST(Logprobs, ChosenTokenIsGivenAlsoWithoutAlternatives) {
  RowLogprobs out;
  raw_logprobs(std::vector<float>{0, 0}, 1, 0, out);
  EXPECT_FLOAT_EQ(out.chosen, std::log(0.5F));
  EXPECT_TRUE(out.top.empty());
}

TEST(Logprobs, RawAreThoseOfTheModelWhateverPenaltiesMasksAndFiltersDo) {
  std::mt19937_64 random(33);
  const std::vector<float> row = testing::random_row(random, 64, 2);
  SamplingParams params;
  params.temperature = 0.5;
  params.top_k = 4;
  params.presence_penalty = 1.5;
  params.logit_bias = {{3, 5}};
  params.banned_tokens = {10, 11};
  params.logprobs = 3;
  const Sampler sampler(params, 5, 64, -1);
  SamplerScratch scratch(64);
  TokenCounts counts(std::vector<std::int32_t>{1, 2});
  counts.append(3);
  OutputLogprobs out;
  const std::int32_t token = sampler.sample(row, {.position = 3, .counts = &counts}, scratch, &out);
  RowLogprobs expected;
  raw_logprobs(row, token, 3, expected);
  EXPECT_EQ(out.raw.chosen, expected.chosen);
  EXPECT_EQ(tokens_of(out.raw), tokens_of(expected));
  EXPECT_NEAR(out.raw.chosen, exact_logprob(row, static_cast<std::size_t>(token)), 1e-5);
}

TEST(Logprobs, FilteredAreThoseOfTheDistributionDrawnFrom) {
  const std::vector<float> row = {2, 1, 0, 3, -1};
  SamplingParams params;
  params.temperature = 0.5;
  params.top_k = 3;
  params.filtered_logprobs = 5;
  const Sampler sampler(params, 5, 5, -1);
  SamplerScratch scratch(5);
  OutputLogprobs out;
  const std::int32_t token = sampler.sample(row, {.position = 3}, scratch, &out);
  const std::vector<float> survivors = {2, 1, -infinity, 3, -infinity};
  EXPECT_EQ(tokens_of(out.filtered), (std::vector<std::int32_t>{3, 0, 1}));
  double sum = 0;
  for (const TokenLogprob& entry : out.filtered.top) {
    EXPECT_NEAR(entry.logprob, exact_logprob(survivors, static_cast<std::size_t>(entry.token), 0.5), 1e-6);
    sum += std::exp(entry.logprob);
    if (entry.token == token) {
      EXPECT_EQ(entry.logprob, out.filtered.chosen);
    }
  }
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST(Logprobs, GreedyDrawsFromOneTokenOnly) {
  SamplingParams params;
  params.temperature = 0;
  params.logprobs = 2;
  params.filtered_logprobs = 2;
  const Sampler sampler(params, 0, 3, -1);
  SamplerScratch scratch(3);
  OutputLogprobs out;
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 2, 2}, {}, scratch, &out), 1);
  EXPECT_EQ(out.filtered.chosen, 0);
  EXPECT_EQ(tokens_of(out.filtered), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(tokens_of(out.raw), (std::vector<std::int32_t>{1, 2}));
}

TEST(Logprobs, ATokenOutsideTheRowIsRefused) {
  RowLogprobs out;
  const std::vector<float> row = {0, 1};
  EXPECT_THROW(raw_logprobs(row, 2, 0, out), InputError);
  EXPECT_THROW(raw_logprobs(row, -1, 0, out), InputError);
  EXPECT_THROW(raw_logprobs(std::vector<float>{-infinity, -infinity}, 0, 0, out), WorkError);
  EXPECT_THROW(raw_logprobs(std::vector<float>{0, std::nanf("")}, 0, 0, out), WorkError);
}

}  // namespace
}  // namespace thalweg::engine
