#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "engine/sampling/filters.hpp"
#include "engine/sampling/row_scan.hpp"
#include "sampling_rows.hpp"

namespace thalweg::engine {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// The definition, word by word: sort everything, walk.
std::vector<bool> kept_by_definition(const std::vector<float>& logits, const Filters& filters) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return logits[a] > logits[b]; });
  while (!order.empty() && logits[order.back()] == -infinity) order.pop_back();
  if (filters.top_k > 0 && static_cast<std::size_t>(filters.top_k) < order.size()) {
    order.resize(static_cast<std::size_t>(filters.top_k));
  }
  std::vector<long double> weights;
  for (const std::size_t i : order) {
    weights.push_back(
        std::exp((static_cast<long double>(logits[i]) - logits[order[0]]) / filters.temperature));
  }
  const long double total = std::accumulate(weights.begin(), weights.end(), 0.0L);
  std::vector<bool> kept(logits.size(), false);
  long double before = 0;
  for (std::size_t j = 0; j < order.size(); ++j) {
    if (filters.top_p < 1 && before > filters.top_p * total) break;
    if (weights[j] < filters.min_p * weights[0]) break;
    kept[order[j]] = true;
    before += weights[j];
  }
  return kept;
}

std::vector<bool> kept_by_cut(const std::vector<float>& logits, const Filters& filters) {
  FilterScratch scratch(logits.size());
  const FilterCut cut = find_cut(logits, find_largest(logits).logit, filters, scratch);
  std::vector<bool> kept;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    kept.push_back(logits[i] != -infinity && cut.keeps(logits[i], static_cast<std::int32_t>(i)));
  }
  return kept;
}

Filters random_filters(std::mt19937_64& random, std::size_t size) {
  Filters filters;
  filters.temperature = 0.2 + 1.8 * testing::uniform(random);
  if (testing::below(random, 2) == 0)
    filters.top_k = static_cast<std::int32_t>(1 + testing::below(random, size));
  if (testing::below(random, 2) == 0) filters.top_p = 1 - testing::uniform(random);
  if (testing::below(random, 2) == 0) filters.min_p = testing::uniform(random) * 0.5;
  return filters;
}

TEST(Filters, KeepWhatTheDefinitionKeepsOnRandomRows) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t size = 1 + testing::below(random, 300);
    const std::vector<float> row = testing::random_row(random, size, 0.1 + 6 * testing::uniform(random));
    const Filters filters = random_filters(random, size);
    ASSERT_EQ(kept_by_cut(row, filters), kept_by_definition(row, filters))
        << "round " << round << " k " << filters.top_k << " p " << filters.top_p << " min " << filters.min_p;
  }
}

TEST(Filters, KeepWhatTheDefinitionKeepsAmongTies) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t size = 1 + testing::below(random, 300);
    const std::vector<float> row = testing::row_with_ties(random, size, 0.3 + 3 * testing::uniform(random));
    const Filters filters = random_filters(random, size);
    ASSERT_EQ(kept_by_cut(row, filters), kept_by_definition(row, filters))
        << "round " << round << " k " << filters.top_k << " p " << filters.top_p << " min " << filters.min_p;
  }
}

TEST(Filters, MaskedTokensAreNeverKept) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 500; ++round) {
    std::vector<float> row = testing::random_row(random, 100, 3);
    for (int i = 0; i < 60; ++i) row[testing::below(random, 99)] = -infinity;
    const Filters filters = random_filters(random, row.size());
    ASSERT_EQ(kept_by_cut(row, filters), kept_by_definition(row, filters)) << "round " << round;
  }
}

TEST(Filters, TopKKeepsTheLowerIdsOfTiesAcrossTheWholeVocabulary) {
  const std::vector<float> row(1000, 1.5F);
  const std::vector<bool> kept = kept_by_cut(row, {.top_k = 37});
  EXPECT_EQ(std::count(kept.begin(), kept.end(), true), 37);
  EXPECT_TRUE(std::all_of(kept.begin(), kept.begin() + 37, [](bool k) { return k; }));
}

TEST(Filters, TopPKeepsTheTokenAtWhichTheMassIsExactlyReached) {
  // Four tokens of a quarter each: before the third the mass is one half, which is not above top_p.
  const std::vector<float> row(4, 0.0F);
  EXPECT_EQ(kept_by_cut(row, {.top_p = 0.5}), (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(kept_by_cut(row, {.top_p = 0.4999}), (std::vector<bool>{true, true, false, false}));
}

TEST(Filters, TopPCountsTheMassOfTheTopKTokensOnly) {
  const std::vector<float> row = {0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(kept_by_cut(row, {.top_k = 2, .top_p = 0.49}),
            (std::vector<bool>{true, false, false, false, false, false, false, false}));
}

TEST(Filters, TheFirstTokenSurvivesTheStrictestFilters) {
  const std::vector<float> row = {1, 3, 3, 2};
  const std::vector<bool> first_only = {false, true, false, false};
  EXPECT_EQ(kept_by_cut(row, {.top_k = 1}), first_only);
  EXPECT_EQ(kept_by_cut(row, {.top_p = 1e-12}), first_only);
  EXPECT_EQ(kept_by_cut(row, {.min_p = 1}), (std::vector<bool>{false, true, true, false}));
}

TEST(Filters, FarApartLogitsAndExtremeTemperaturesAreNoTrouble) {
  const std::vector<float> row = {-3e38F, 3e38F, 0, 2.9e38F};
  for (const double temperature : {1.2e-38, 1e-6, 1.0, 2.0}) {
    const std::vector<bool> kept =
        kept_by_cut(row, {.temperature = temperature, .top_k = 3, .top_p = 0.9, .min_p = 0.1});
    EXPECT_EQ(kept, (std::vector<bool>{false, true, false, false})) << temperature;
  }
}

TEST(RowScan, FindsTheLowestIdOfTheLargestLogit) {
  std::mt19937_64 random(14);
  for (int round = 0; round < 500; ++round) {
    const std::vector<float> row = testing::row_with_ties(random, 1 + testing::below(random, 70), 2);
    const LargestLogit largest = find_largest(row);
    const auto first = std::max_element(row.begin(), row.end());
    ASSERT_EQ(largest.token, std::distance(row.begin(), first));
    ASSERT_EQ(largest.logit, *first);
  }
}

}  // namespace
}  // namespace thalweg::engine
