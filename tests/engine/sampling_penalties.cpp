#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "engine/sampling/penalties.hpp"
#include "sampling_rows.hpp"

namespace thalweg::engine {
namespace {

std::vector<float> penalised(std::vector<float> row, const TokenCounts& counts,
                             const SamplingParams& params) {
  apply_penalties(row, counts, params);
  return row;
}

std::vector<float> penalised_by_definition(std::vector<float> row, const std::vector<std::int32_t>& prompt,
                                           const std::vector<std::int32_t>& output,
                                           const SamplingParams& params) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const auto token = static_cast<std::int32_t>(i);
    const auto in_prompt = std::count(prompt.begin(), prompt.end(), token);
    const auto in_output = std::count(output.begin(), output.end(), token);
    double logit = row[i];
    if (in_prompt + in_output > 0) {
      logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    }
    logit -= params.frequency_penalty * static_cast<double>(in_output);
    if (in_output > 0) logit -= params.presence_penalty;
    row[i] = static_cast<float>(logit);
  }
  return row;
}

std::vector<std::int32_t> random_tokens(std::mt19937_64& random, std::size_t count, std::size_t vocab) {
  std::vector<std::int32_t> tokens(count);
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(testing::below(random, vocab));
  return tokens;
}

SamplingParams random_penalties(std::mt19937_64& random) {
  SamplingParams params;
  params.repetition_penalty = 0.5 + 1.5 * testing::uniform(random);
  params.presence_penalty = 4 * testing::uniform(random) - 2;
  params.frequency_penalty = 4 * testing::uniform(random) - 2;
  return params;
}

TEST(Penalties, EqualTheDefinitionOnRandomSequences) {
  std::mt19937_64 random(21);
  for (int round = 0; round < 300; ++round) {
    const std::size_t vocab = 1 + testing::below(random, 60);
    const auto prompt = random_tokens(random, testing::below(random, 40), vocab);
    const auto output = random_tokens(random, testing::below(random, 200), vocab);
    const SamplingParams params = random_penalties(random);
    const std::vector<float> row = testing::random_row(random, vocab, 3);
    TokenCounts counts(prompt);
    for (const std::int32_t token : output) counts.append(token);
    ASSERT_EQ(penalised(row, counts, params), penalised_by_definition(row, prompt, output, params)) << round;
  }
}

TEST(Penalties, RollbackEqualsRecompute) {
  std::mt19937_64 random(22);
  const std::size_t vocab = 50;
  const auto prompt = random_tokens(random, 20, vocab);
  const SamplingParams params = random_penalties(random);
  const std::vector<float> row = testing::random_row(random, vocab, 3);
  TokenCounts counts(prompt);
  std::vector<std::int32_t> output;
  for (int round = 0; round < 500; ++round) {
    for (const std::int32_t token : random_tokens(random, 1 + testing::below(random, 6), vocab)) {
      counts.append(token);
      output.push_back(token);
    }
    const std::size_t rejected = testing::below(random, std::min<std::size_t>(output.size(), 6) + 1);
    counts.rollback(rejected);
    output.resize(output.size() - rejected);
    ASSERT_EQ(counts.output_length(), output.size());
    ASSERT_EQ(penalised(row, counts, params), penalised_by_definition(row, prompt, output, params)) << round;
  }
}

TEST(Penalties, CopiesAreIndependent) {
  SamplingParams params;
  params.presence_penalty = 1;
  TokenCounts original(std::vector<std::int32_t>{1});
  original.append(2);
  TokenCounts copy = original;
  copy.append(3);
  EXPECT_EQ(penalised({0, 0, 0, 0}, original, params), (std::vector<float>{0, 0, -1, 0}));
  EXPECT_EQ(penalised({0, 0, 0, 0}, copy, params), (std::vector<float>{0, 0, -1, -1}));
}

TEST(Penalties, TokensBehindTheVocabularyAreCountedButTouchNoLogit) {
  SamplingParams params;
  params.repetition_penalty = 2;
  const TokenCounts counts(std::vector<std::int32_t>{0, 4, 129285});
  EXPECT_EQ(penalised({4, 4}, counts, params), (std::vector<float>{2, 4}));
}

TEST(Penalties, RollingBackMoreThanWasAppendedThrows) {
  TokenCounts counts(std::vector<std::int32_t>{1, 2, 3});
  counts.append(1);
  EXPECT_THROW(counts.rollback(2), std::out_of_range);
}

TEST(Penalties, ManyDistinctTokensAreAllCounted) {
  TokenCounts counts({}, 10);
  for (std::int32_t token = 0; token < 20000; ++token) counts.append(token * 64);
  ASSERT_EQ(counts.entries().size(), 20000u);
  for (std::int32_t token = 0; token < 20000; ++token) counts.append(token * 64);
  EXPECT_EQ(counts.entries().size(), 20000u);
  EXPECT_TRUE(std::all_of(counts.entries().begin(), counts.entries().end(),
                          [](const auto& e) { return e.output == 2; }));
}

}  // namespace
}  // namespace thalweg::engine
