// Cases that users of engines of this kind have reported, each under its number.
#include "base/error.hpp"
#include "engine_support.hpp"

namespace thalweg::engine {
namespace {

using testing::Answer;
using testing::ask;
using testing::model_of;
using testing::random_prompt;
using testing::sampled;

Request greedy(std::vector<std::int32_t> prompt, std::int64_t max_tokens) {
  Request request = sampled(std::move(prompt), max_tokens);
  request.sampling.temperature = 0;
  return request;
}

std::vector<std::int32_t> story() {
  return model_of("mini").tokenizer.encode(
      "<｜begin▁of▁sentence｜><｜User｜>Tell me a story.<｜Assistant｜></think>");
}

Answer run(const Request& request, EngineOptions options = testing::device_options()) {
  options.threads = 2;
  Engine engine(model_of("mini"), options);
  const auto answers = ask(engine, request);
  engine.drain();
  return answers->front();
}

TEST(ReportedCases, F1_TemperatureZeroIsTheSameAloneAmong8AndAmong64) {
  const Request request = greedy(story(), 24);
  const Answer alone = run(request);
  for (const std::size_t crowd : {8, 64}) {
    EngineOptions options = testing::device_options();
    options.sequences = static_cast<std::int32_t>(crowd);
    Engine engine(model_of("mini"), options);
    std::vector<std::shared_ptr<std::vector<Answer>>> answers;
    for (std::size_t i = 0; i < crowd; ++i) {
      answers.push_back(
          ask(engine, i % 2 == 0 ? request : sampled(random_prompt(model_of("mini"), 3 + i % 9, i), 12, i)));
    }
    engine.drain();
    for (std::size_t i = 0; i < crowd; i += 2) EXPECT_EQ(answers[i]->front().tokens, alone.tokens);
  }
}

TEST(ReportedCases, F2_StopStringWithinAcceptedDraftsEndsTokensAndLogprobsWithTheText) {
  Request request = greedy(story(), 60);
  const Answer whole = run(request);
  // A stop in the middle of what speculation accepts at once, several places of it.
  for (const std::size_t at : {30, 31, 32, 33, 34, 35}) {
    ASSERT_GT(whole.text.size(), at + 3);
    request.sampling.stop_strings = {whole.text.substr(at, 3)};
    request.sampling.logprobs = 1;
    Answer plain;
    for (const char* speculation : {"off", "fixed:5"}) {
      EngineOptions options = testing::device_options();
      options.speculation = parse_speculation(speculation);
      const Answer answer = run(request, options);
      EXPECT_EQ(answer.finish, Finish::stop);
      EXPECT_EQ(answer.stop, request.sampling.stop_strings.front());
      EXPECT_EQ(answer.text, whole.text.substr(0, whole.text.find(answer.stop)));
      EXPECT_EQ(answer.tokens.size(), answer.logprobs.size());
      EXPECT_EQ(answer.usage.output_tokens, static_cast<std::int64_t>(answer.tokens.size()));
      if (plain.tokens.empty()) plain = answer;
      EXPECT_EQ(answer.tokens, plain.tokens);
      EXPECT_TRUE(testing::same(answer.logprobs, plain.logprobs));
    }
  }
}

TEST(ReportedCases, F3_StopTokensWithLogprobsGiveEqualLengths) {
  Request request = greedy(story(), 40);
  request.sampling.logprobs = 2;
  const Answer whole = run(request);
  request.sampling.ignore_eos = false;
  request.sampling.stop_tokens = {1, whole.tokens[7], whole.tokens[12]};
  const Answer answer = run(request);
  EXPECT_EQ(answer.finish, Finish::stop);
  EXPECT_LE(answer.tokens.size(), 8U);
  EXPECT_EQ(answer.tokens.size(), answer.logprobs.size());
}

TEST(ReportedCases, F5_LimitsAreRefusedWithTheirNamesAndTwoAnswersAreFine) {
  Engine engine(model_of("mini"), testing::device_options());
  const auto refusal = [&](auto&& change) -> std::string {
    Request request = greedy(story(), 4);
    change(request.sampling);
    try {
      engine.submit(request, [](const Event&) {});
    } catch (const InputError& error) {
      return error.subject();
    }
    return "";
  };
  EXPECT_EQ(refusal([](SamplingParams& s) { s.max_tokens = 0; }), "max_tokens");
  EXPECT_EQ(refusal([](SamplingParams& s) { s.temperature = 3; }), "temperature");
  EXPECT_EQ(refusal([](SamplingParams& s) { s.stop_strings.assign(20, "x"); }), "stop_strings");
  EXPECT_EQ(refusal([](SamplingParams& s) { s.n = 0; }), "n");
  EXPECT_EQ(refusal([](SamplingParams& s) { s.n = 2; }), "");
  engine.drain();
  EXPECT_EQ(engine.statistics().finished, 1U);
}

TEST(ReportedCases, F6_LogprobsWithoutAlternativesGiveTheChosenTokenAndAnEmptyList) {
  Request request = greedy(story(), 4);
  request.sampling.logprobs = 0;
  const Answer answer = run(request);
  ASSERT_EQ(answer.logprobs.size(), 4U);
  for (const RowLogprobs& row : answer.logprobs) {
    EXPECT_LE(row.chosen, 0);
    EXPECT_TRUE(row.top.empty());
  }
}

// In both modes a warm run equals the cold one of that mode.
TEST(ReportedCases, H1_LongPromptColdAndTwiceWarmIsEqualAndNeverEmpty) {
  const LoadedModel& model = model_of("tiny");
  for (const cache::ReuseMode mode : {cache::ReuseMode::exact, cache::ReuseMode::replay}) {
    const bool exact = mode == cache::ReuseMode::exact;
    const Request request = greedy(random_prompt(model,
                                                 testing::kSanitized ? 600
                                                 : exact             ? 7700
                                                                     : 2500,
                                                 1),
                                   6);
    EngineOptions options = testing::device_options();
    options.mode = mode;
    options.cache_tokens = 8192;
    Engine engine(model, options);
    std::vector<std::int32_t> cold;
    for (int round = 0; round < 3; ++round) {
      const auto answers = ask(engine, request);
      engine.drain();
      const Answer& answer = answers->front();
      if (round == 0) cold = answer.tokens;
      EXPECT_EQ(answer.tokens.size(), 6U);
      EXPECT_EQ(answer.tokens, cold);
      EXPECT_EQ(answer.usage.reused_tokens > 0, round > 0);
    }
  }
}

TEST(ReportedCases, H2_PromptsThatShare127To255TokensHitWhereTheRuleSaysAndAnswerAsCold) {
  const LoadedModel& model = model_of("tiny");
  const std::vector<std::int32_t> first = random_prompt(model, 300, 1);
  struct Case {
    std::int64_t shared, exact, replay;
  };
  // Snapshots lie at 128, 256 and 299. Replay runs the last 48 of the second prompt's 300 tokens.
  for (const Case& one : {Case{127, 0, 0},
                          {128, 128, 128},
                          {129, 128, 128},
                          {255, 128, 128},
                          {256, 256, 128},
                          {299, 299, 128}}) {
    std::vector<std::int32_t> second = first;
    for (std::size_t i = static_cast<std::size_t>(one.shared); i < second.size(); ++i)
      second[i] = 3 + (second[i] + 1) % 400;
    for (const cache::ReuseMode mode : {cache::ReuseMode::exact, cache::ReuseMode::replay}) {
      EngineOptions options = testing::device_options();
      options.mode = mode;
      options.replay_keep = 48;
      options.snapshot_every = 128;
      options.cache_tokens = 2048;
      std::vector<std::int32_t> cold;
      {
        Engine engine(model, options);
        const auto answers = ask(engine, greedy(second, 8));
        engine.drain();
        cold = answers->front().tokens;
      }
      Engine engine(model, options);
      ask(engine, greedy(first, 1));
      engine.drain();
      const auto answers = ask(engine, greedy(second, 8));
      engine.drain();
      EXPECT_EQ(answers->front().tokens, cold) << one.shared << " shared";
      EXPECT_EQ(answers->front().usage.reused_tokens,
                mode == cache::ReuseMode::exact ? one.exact : one.replay)
          << one.shared << " shared";
    }
  }
}

TEST(ReportedCases, H4_TenantsOfDifferentSaltsNeverShare) {
  const LoadedModel& model = model_of("tiny");
  EngineOptions options = testing::device_options();
  options.cache_tokens = 2048;
  Engine engine(model, options);
  const auto reused = [&](const char* salt) {
    Request request = greedy(random_prompt(model, 200, 1), 3);
    request.cache_salt = salt;
    const auto answers = ask(engine, request);
    engine.drain();
    return answers->front().usage.reused_tokens;
  };
  EXPECT_EQ(reused("A"), 0);
  EXPECT_EQ(reused("B"), 0);
  EXPECT_EQ(reused(""), 0);
  EXPECT_EQ(reused("A"), 199);
  EXPECT_EQ(reused("B"), 199);
}

TEST(ReportedCases, H6_FinishedPromptsOfManyTimesThePoolNeverExceedIt) {
  const LoadedModel& model = model_of("tiny");
  EngineOptions options = testing::device_options();
  options.cache_tokens = 512;
  options.snapshot_every = 128;
  options.snapshots = 4;
  Engine engine(model, options);
  std::vector<std::shared_ptr<std::vector<Answer>>> answers;
  for (std::uint64_t i = 0; i < 14; ++i)
    answers.push_back(ask(engine, greedy(random_prompt(model, 200 + 20 * i, i), 3)));
  engine.drain();
  for (const auto& one : answers) EXPECT_EQ(one->front().finish, Finish::length);
}

// K1: engine_test.cpp (CancellingAtAnyMoment...), scheduler_test.cpp and, at every state and in every world,
// scheduler_random_test.cpp. Here: the named states.
TEST(ReportedCases, K1_ClientThatLeavesQueuedInPrefillDecodingOrFinishedLeavesNothingBehind) {
  const LoadedModel& model = model_of("tiny");
  EngineOptions options = testing::device_options();
  options.sequences = 1;
  options.batch_tokens = 4;
  options.cache_tokens = 512;
  Engine engine(model, options);
  const auto submit = [&](std::size_t prompt) {
    auto answer = std::make_shared<Answer>();
    const RequestId id = engine.submit(greedy(random_prompt(model, prompt, prompt), 90),
                                       [answer](const Event& event) { answer->add(event); });
    return std::pair(id, answer);
  };
  const auto [decoding, first] = submit(3);
  const auto [queued, second] = submit(301);
  engine.cancel(queued);
  engine.cancel(decoding);
  const auto [prefilling, third] = submit(400);
  while (engine.statistics().running == 0) std::this_thread::yield();
  engine.cancel(prefilling);
  engine.drain();
  engine.cancel(prefilling);
  for (const auto& answer : {first, second, third}) EXPECT_EQ(answer->finish, Finish::aborted);
  engine.check_invariants();
  EXPECT_EQ(engine.statistics().free_blocks, 4U);
  EXPECT_EQ(engine.statistics().aborted, 3U);
}

TEST(ReportedCases, K4_PromptsOfExactlyTheContextChunksBeyondABlockAndHitsOfAWindow) {
  const LoadedModel& model = model_of("tiny");
  EngineOptions options = testing::device_options();
  options.cache_tokens = 512;
  options.context = 400;
  options.batch_tokens = 128 + 16;
  Engine engine(model, options);
  const auto full = ask(engine, greedy(random_prompt(model, 400, 1), 50));
  const auto almost = ask(engine, greedy(random_prompt(model, 399, 2), 50));
  EXPECT_THROW(engine.submit(greedy(random_prompt(model, 401, 3), 50), [](const Event&) {}), InputError);
  engine.drain();
  EXPECT_EQ(full->front().tokens.size(), 1U) << "the last token needs no place";
  EXPECT_EQ(full->front().finish, Finish::length);
  EXPECT_EQ(almost->front().tokens.size(), 2U);
  // A prompt that is cached whole still computes its last token; one that is a window (16) longer, the
  // window.
  for (const std::size_t length : {16U, 17U, 128U, 129U, 144U, 145U}) {
    const Request request = greedy(random_prompt(model, length, 40), 3);
    const auto cold = ask(engine, request);
    engine.drain();
    const auto warm = ask(engine, request);
    engine.drain();
    EXPECT_EQ(warm->front().usage.reused_tokens, static_cast<std::int64_t>(length) - 1);
    EXPECT_EQ(warm->front().tokens, cold->front().tokens);
  }
}

}  // namespace
}  // namespace thalweg::engine
