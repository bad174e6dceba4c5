// Speculation changes the speed of an answer and nothing else.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/speculation/adaptive_policy.hpp"
#include "support/device.hpp"

namespace thalweg::engine {
namespace {

const LoadedModel& mini() {
  static const auto model = load_model(std::filesystem::path(THALWEG_SOURCE_DIR) / "models/mini");
  return *model;
}

// Everything a client sees of one answer.
struct Seen {
  std::vector<std::int32_t> tokens;
  std::vector<float> logprobs;
  std::string text;
  std::string stop;
  Finish finish = Finish::failed;
  bool operator==(const Seen&) const = default;
};

std::vector<std::vector<Seen>> run(const std::string& speculation, const std::vector<Request>& requests,
                                   std::int64_t cache_tokens = 0) {
  EngineOptions options;
  options.device = backend::testing::kDevice;
  options.speculation = parse_speculation(speculation);
  options.sequences = 6;
  options.cache_tokens = cache_tokens;
  std::vector<std::vector<Seen>> seen(requests.size());
  Engine engine(mini(), options);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    seen[i].resize(static_cast<std::size_t>(requests[i].sampling.n));
    engine.submit(requests[i], [&seen, i](const Event& event) {
      Seen& answer = seen[i][static_cast<std::size_t>(event.choice)];
      if (event.token) answer.tokens.push_back(*event.token);
      if (event.logprobs != nullptr) answer.logprobs.push_back(event.logprobs->raw.chosen);
      answer.text += event.text;
      if (!event.finish) return;
      answer.finish = *event.finish;
      answer.stop = event.stop_string;
    });
  }
  engine.drain();
  engine.check_invariants();
  return seen;
}

Request request(const std::string& user, double temperature) {
  Request request;
  request.prompt =
      mini().tokenizer.encode("<｜begin▁of▁sentence｜><｜User｜>" + user + "<｜Assistant｜></think>");
  request.sampling.temperature = temperature;
  request.sampling.seed = 11;
  request.sampling.max_tokens = 40;
  return request;
}

// One request of every kind that must compose with speculation.
std::vector<Request> requests(double temperature) {
  std::vector<Request> list;
  list.push_back(request("Tell me a story.", temperature));
  list.push_back(request("What is 12 + 30?", temperature));
  list.back().sampling.logprobs = 3;
  list.push_back(request("Tell me a story.", temperature));
  list.back().sampling.n = 3;
  list.push_back(request("Tell me a story.", temperature));
  list.back().sampling.stop_strings = {" and", "a silver"};
  list.push_back(request("What do bees make?", temperature));
  list.back().sampling.repetition_penalty = 1.3;
  list.back().sampling.frequency_penalty = 0.5;
  list.push_back(request("Count to five.", temperature));
  list.back().sampling.min_tokens = 20;
  list.back().sampling.top_p = 0.9;
  list.back().sampling.top_k = 20;
  return list;
}

class Speculation : public testing::TestWithParam<std::string> {};

TEST_P(Speculation, ChangesNothingThatAClientSees) {
  for (const double temperature : {0.0, 1.0}) {
    EXPECT_EQ(run(GetParam(), requests(temperature)), run("off", requests(temperature))) << temperature;
  }
}

TEST_P(Speculation, SurvivesPreemption) {
  // Room for about two of the six sequences at a time.
  std::vector<Request> list;
  for (int i = 0; i < 6; ++i) {
    list.push_back(request("Tell me a story about the number " + std::to_string(i) + ".", 1));
    list.back().sampling.max_tokens = 130;
    list.back().sampling.ignore_eos = true;
  }
  EXPECT_EQ(run(GetParam(), list, 512), run("off", list));
}

INSTANTIATE_TEST_SUITE_P(Policies, Speculation,
                         testing::Values("fixed:1", "fixed:3", "fixed:5", "dynamic", "adaptive"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::erase(name, ':');
                           return name;
                         });

TEST(SpeculationOptions, RefusesMoreDraftsThanTheModelHas) {
  EngineOptions options;
  options.device = backend::testing::kDevice;
  options.speculation = parse_speculation("fixed:7");
  EXPECT_THROW(Engine(mini(), options), UsageError);
}

TEST(SpeculationOptions, NamesWhatItExpected) {
  for (const char* text : {"", "on", "fixed", "fixed:", "fixed:0", "fixed:-1", "fixed:2x", "Dynamic"}) {
    EXPECT_THROW(parse_speculation(text), UsageError) << text;
  }
}

TEST(ConfidenceCalibration, LearnsThatConfidencesAreTooHigh) {
  ConfidenceCalibration calibration;
  EXPECT_FLOAT_EQ(calibration.rate(0.9F), 0.9F);
  for (int i = 0; i < 400; ++i) calibration.observe(0.9F, i % 2 == 0);
  EXPECT_NEAR(calibration.rate(0.9F), 0.5, 0.05);
  EXPECT_FLOAT_EQ(calibration.rate(0.2F), 0.2F);
}

// Steps cost the same whatever their rows (a memory-bound device), or in proportion to them (a compute-bound
// one).
std::vector<StepCostPoint> flat() {
  return {{1, 10}, {64, 10.1}};
}
std::vector<StepCostPoint> proportional() {
  return {{1, 10}, {64, 640}};
}

int verified(AdaptivePolicy& policy, float confidence) {
  const std::vector<float> confidences(5, confidence);
  DraftView view{1, confidences, 5};
  policy.choose({&view, 1}, 0);
  return view.verify;
}

TEST(AdaptivePolicy, VerifiesEverythingWhenRowsAreFree) {
  AdaptivePolicy policy(flat(), 5);
  EXPECT_EQ(verified(policy, 0.5F), 5);
}

TEST(AdaptivePolicy, VerifiesNothingWhenARowCostsAStep) {
  AdaptivePolicy policy(proportional(), 5);
  EXPECT_EQ(verified(policy, 0.9F), 0);
}

TEST(AdaptivePolicy, StopsDraftingThatDoesNotPayAndTriesAgain) {
  AdaptivePolicy policy(proportional(), 5);
  const std::vector<float> confidences(5, 0.1F);
  int drafted = 0;
  for (int step = 0; step < 2000; ++step) {
    DraftView view{1, confidences, 5};
    policy.choose({&view, 1}, 0);
    drafted += view.draft_next ? 1 : 0;
    policy.observe_step(1 + view.verify, view.draft_next ? 1 : 0, 0.010, view.draft_next ? 0.008 : 0);
    policy.observe_drafts({confidences, view.verify, 0});
  }
  EXPECT_GT(drafted, 5);   // it keeps trying
  EXPECT_LT(drafted, 40);  // seldom
}

}  // namespace
}  // namespace thalweg::engine
