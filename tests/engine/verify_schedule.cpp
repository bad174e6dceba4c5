#include "engine/speculation/verify_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "engine/speculation/step_cost.hpp"
#include "sampling_rows.hpp"

namespace thalweg::engine {
namespace {

Json golden() {
  const std::string file = THALWEG_SOURCE_DIR "/tests/data/varlen.json";
  return parse_json(read_text_file(file), file);
}

StepCost cost_of(const Json& c) {
  std::vector<StepCostPoint> curve;
  for (const Json& point : c.at("curve")) curve.push_back({point[0], point[1]});
  StepCost cost(curve);
  for (const Json& u : c.at("updates")) {
    for (int i = 0; i < u[4].get<int>(); ++i) cost.observe(u[0], u[1], u[2], u[3]);
  }
  return cost;
}

std::vector<DraftEstimates> sequences_of(const Json& c) {
  std::vector<DraftEstimates> sequences;
  for (const Json& s : c.at("sequences")) {
    sequences.push_back({.drafts = s.at("num_drafts"),
                         .rates = s.at("accept_rates"),
                         .previous_rates = s.at("prev_accept_rates"),
                         .scheduled = s.at("schedule_count"),
                         .processed = s.at("process_count"),
                         .has_proposals = s.at("has_draft_info")});
  }
  return sequences;
}

TEST(VerifySchedule, GoldenPlansAreReproduced) {
  const Json data = golden();
  ASSERT_EQ(data["schedule"].size(), 12u);
  for (const Json& c : data["schedule"]) {
    const std::string name = c["name"];
    const Json& expected = c["expected"];
    const std::vector<DraftEstimates> sequences = sequences_of(c);
    const StepCost cost = cost_of(c);
    const StepCost::Sampler sampler = cost.sampler(static_cast<int>(sequences.size()));
    EXPECT_EQ(cost.slope(), expected["forward_slope_ms"].get<double>()) << name;
    EXPECT_EQ(sampler.ms, expected["sampler_ms"].get<double>()) << name;
    EXPECT_EQ(to_string(sampler.source), expected["sampler_source"].get<std::string>()) << name;
    if (expected["error"]) {
      EXPECT_THROW(plan_verification(cost, sequences), InputError) << name;
      continue;
    }
    const VerifyPlan plan = plan_verification(cost, sequences);
    EXPECT_EQ(plan.rows, expected["query_lengths"].get<std::vector<int>>()) << name;
    EXPECT_EQ(plan.total, expected["total_query"].get<int>()) << name;
  }
}

TEST(VerifySchedule, GoldenDistributionsAreReproduced) {
  const Json data = golden();
  ASSERT_EQ(data["allocate"].size(), 6u);
  for (const Json& c : data["allocate"]) {
    std::vector<float> confidences;
    for (const Json& row : c["previous_confidence"]) {
      for (const Json& value : row) confidences.push_back(value);
    }
    const int drafts = static_cast<int>(c["previous_confidence"][0].size());
    EXPECT_EQ(distribute_rows(c["total_query"], drafts, c["remap"].get<std::vector<int>>(), confidences),
              c["expected_query_lengths"].get<std::vector<int>>())
        << c["name"];
  }
}

std::vector<float> random_rates(std::mt19937_64& random, int drafts) {
  std::vector<float> rates;
  float rate = 1;
  for (int j = 0; j < drafts; ++j) rates.push_back(rate *= static_cast<float>(testing::uniform(random)));
  return rates;
}

std::vector<DraftEstimates> random_sequences(std::mt19937_64& random, std::size_t count) {
  std::vector<DraftEstimates> sequences(count);
  for (DraftEstimates& s : sequences) {
    s.drafts = 5;
    s.rates = random_rates(random, 5);
    s.previous_rates = random_rates(random, 5);
    s.scheduled = s.processed = 3;
  }
  return sequences;
}

StepCost random_cost(std::mt19937_64& random, int rows) {
  std::vector<StepCostPoint> curve;
  double ms = 5;
  for (int r = 1; r <= rows; r += 1 + static_cast<int>(testing::below(random, 8))) {
    curve.push_back({r, ms});
    ms += testing::uniform(random);
  }
  curve.push_back({curve.back().rows + 8, ms + 0.5});
  return StepCost(curve);
}

TEST(VerifySchedule, EveryoneGetsARowAndNobodyMoreThanAllDrafts) {
  std::mt19937_64 random(61);
  for (int round = 0; round < 300; ++round) {
    const auto sequences = random_sequences(random, 1 + testing::below(random, 20));
    const StepCost cost = random_cost(random, static_cast<int>(sequences.size()) * 6);
    const VerifyPlan plan = plan_verification(cost, sequences);
    EXPECT_EQ(std::accumulate(plan.rows.begin(), plan.rows.end(), 0), plan.total);
    EXPECT_LE(plan.total, cost.curve().back().rows);
    for (const int rows : plan.rows) EXPECT_TRUE(rows >= 1 && rows <= 6);
  }
}

TEST(VerifySchedule, NewestRatesDecideWhoButNeverHowMany) {
  std::mt19937_64 random(62);
  for (int round = 0; round < 300; ++round) {
    auto sequences = random_sequences(random, 8);
    const StepCost cost = random_cost(random, 48);
    const VerifyPlan before = plan_verification(cost, sequences);
    for (DraftEstimates& s : sequences) s.rates = random_rates(random, 5);
    EXPECT_EQ(plan_verification(cost, sequences).total, before.total);
  }
}

TEST(VerifySchedule, RaisingOnesRatesNeverLowersItsRows) {
  std::mt19937_64 random(63);
  for (int round = 0; round < 300; ++round) {
    auto sequences = random_sequences(random, 8);
    const StepCost cost = random_cost(random, 48);
    const VerifyPlan before = plan_verification(cost, sequences);
    const std::size_t raised = testing::below(random, 8);
    for (float& rate : sequences[raised].rates) rate = std::sqrt(rate);
    EXPECT_GE(plan_verification(cost, sequences).rows[raised], before.rows[raised]);
  }
}

TEST(VerifySchedule, OrderOfSequencesDoesNotMatter) {
  std::mt19937_64 random(64);
  auto sequences = random_sequences(random, 10);
  const StepCost cost = random_cost(random, 60);
  const VerifyPlan plan = plan_verification(cost, sequences);
  std::reverse(sequences.begin(), sequences.end());
  VerifyPlan reversed = plan_verification(cost, sequences);
  std::reverse(reversed.rows.begin(), reversed.rows.end());
  EXPECT_EQ(reversed.rows, plan.rows);
}

TEST(VerifySchedule, WithoutACurveEveryDraftIsVerified) {
  std::mt19937_64 random(65);
  EXPECT_EQ(plan_verification(StepCost({}), random_sequences(random, 3)).rows, (std::vector<int>{6, 6, 6}));
  EXPECT_EQ(plan_verification(StepCost({{4, 1.0}}), {}).total, 0);
}

TEST(VerifySchedule, ContradictionsAreRefused) {
  const StepCost cost({{1, 1.0}, {2, 1.5}});
  const auto plan = [&](std::vector<DraftEstimates> s) { return plan_verification(cost, s); };
  EXPECT_THROW(plan({{.drafts = 5, .rates = {1, 1}}}), InputError);
  EXPECT_THROW(plan({{.drafts = 5, .previous_rates = {1}}}), InputError);
  EXPECT_THROW(plan({{.drafts = -1}}), InputError);
  EXPECT_THROW(plan({{.scheduled = 1, .processed = 2}}), InputError);
  EXPECT_THROW(plan({{}, {}, {}}), InputError);
  const std::vector<int> row_of = {0, -1};
  const std::vector<float> confidences(5, 0.5F);
  EXPECT_THROW(distribute_rows(1, 5, row_of, confidences), InputError);
  EXPECT_THROW(distribute_rows(13, 5, row_of, confidences), InputError);
  EXPECT_THROW(distribute_rows(4, 0, row_of, confidences), InputError);
  EXPECT_THROW(distribute_rows(4, 5, std::vector<int>{1, -1}, confidences), InputError);
  EXPECT_THROW(distribute_rows(4, 5, std::vector<int>{-2, -1}, confidences), InputError);
}

TEST(StepCost, CurvesAndSamplesThatMakeNoSenseAreRefused) {
  const double nan = std::nan("");
  EXPECT_THROW(StepCost({{0, 1.0}}), InputError);
  EXPECT_THROW(StepCost({{2, 1.0}, {2, 1.5}}), InputError);
  EXPECT_THROW(StepCost({{2, 0.0}}), InputError);
  EXPECT_THROW(StepCost({{2, nan}}), InputError);
  StepCost cost({{2, 1.0}});
  EXPECT_THROW(cost.observe(1, 3, 1, 1), InputError);
  EXPECT_THROW(cost.observe(1, 2, nan, 1), InputError);
}

TEST(StepCost, SlopeForgetsSamplesOlderThanTheWindow) {
  StepCost cost({{1, 1.0}, {2, 1.0}});
  for (int i = 0; i < 20; ++i) cost.observe(1, 1, 9, 0);
  EXPECT_EQ(cost.slope(), 8);
  for (std::size_t i = 0; i < StepCost::slope_window; ++i) cost.observe(1, 2, 2, 0);
  EXPECT_EQ(cost.slope(), 0.5);
}

TEST(StepCost, RunningMedianEqualsSorting) {
  std::mt19937_64 random(66);
  RunningMedian running;
  std::vector<double> values;
  for (int i = 0; i < 500; ++i) {
    if (values.size() > 5 && testing::below(random, 3) == 0) {
      running.remove(values.front());
      values.erase(values.begin());
    }
    values.push_back(static_cast<double>(testing::below(random, 20)));
    running.add(values.back());
    std::vector<double> ordered = values;
    std::sort(ordered.begin(), ordered.end());
    const std::size_t half = ordered.size() / 2;
    ASSERT_EQ(running.median(),
              ordered.size() % 2 == 1 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2);
  }
}

}  // namespace
}  // namespace thalweg::engine
