// The engine through its own door: what callers may rely on.
#include <atomic>
#include <chrono>
#include <future>
#include <random>
#include <thread>

#include "base/error.hpp"
#include "engine_support.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::engine {
namespace {

using testing::Answer;
using testing::ask;
using testing::expect_balanced;
using testing::model_of;
using testing::random_prompt;
using testing::sampled;

EngineOptions small() {
  EngineOptions options = testing::device_options();
  options.threads = 2;
  options.sequences = 4;
  options.batch_tokens = 32;
  options.cache_tokens = 1024;
  return options;
}

std::string refusal(Engine& engine, Request request) {
  try {
    engine.submit(std::move(request), [](const Event&) { ADD_FAILURE() << "an event of a refused request"; });
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string refused_options(const EngineOptions& options) {
  try {
    const Engine engine(model_of("tiny"), options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Engine, EveryAnswerEndsWithOneLastEvent) {
  Engine engine(model_of("tiny"), small());
  Request request = sampled(random_prompt(model_of("tiny"), 20, 1), 5);
  request.sampling.n = 3;
  const auto answers = ask(engine, request);
  engine.drain();
  for (const Answer& answer : *answers) {
    EXPECT_EQ(answer.finish, Finish::length);
    EXPECT_EQ(answer.tokens.size(), 5U);
    EXPECT_EQ(answer.usage.prompt_tokens, 20);
    EXPECT_EQ(answer.usage.output_tokens, 5);
  }
}

TEST(Engine, TheFirstOfManyAnswersIsTheOnlyOneOfOne) {
  Engine engine(model_of("tiny"), small());
  Request request = sampled(random_prompt(model_of("tiny"), 20, 1), 8);
  const auto one = ask(engine, request);
  request.sampling.n = 3;
  const auto three = ask(engine, request);
  engine.drain();
  EXPECT_EQ(one->front().tokens, three->front().tokens);
  EXPECT_NE((*three)[0].tokens, (*three)[1].tokens);
  EXPECT_NE((*three)[1].tokens, (*three)[2].tokens);
}

TEST(Engine, PromptLogprobsAreOneForEveryPromptTokenButTheFirst) {
  const LoadedModel& model = model_of("tiny");
  Request request = sampled(random_prompt(model, 75, 1), 2);
  request.sampling.prompt_logprobs = 3;
  std::vector<std::vector<RowLogprobs>> all;
  for (const std::int32_t chunk : {7, 512}) {
    EngineOptions options = small();
    options.batch_tokens = chunk;
    Engine engine(model, options);
    for (int round = 0; round < 2;
         ++round) {  // the second time the prompt is cached, but its rows are wanted
      const auto answers = ask(engine, request);
      engine.drain();
      all.push_back(answers->front().prompt_logprobs);
      EXPECT_EQ(all.back().size(), 74U);
      EXPECT_EQ(answers->front().usage.reused_tokens, 0);
    }
  }
  for (const auto& one : all) EXPECT_TRUE(testing::same(one, all.front()));
}

TEST(Engine, PromptLogprobsSurvivePreemption) {
  const LoadedModel& model = model_of("tiny");
  Request request = sampled(random_prompt(model, 60, 1), 2);
  request.sampling.prompt_logprobs = 1;
  EngineOptions options = small();
  options.sequences = 1;
  options.batch_tokens = 4;
  std::vector<RowLogprobs> alone;
  {
    Engine engine(model, options);
    const auto answers = ask(engine, request);
    engine.drain();
    alone = answers->front().prompt_logprobs;
  }
  for (const std::size_t host : {std::size_t{0}, std::size_t{1} << 26}) {
    options.host_cache_bytes = host;
    Engine engine(model, options);
    // Whoever is first ends when the measured one is in its prompt, and asks for something urgent.
    const auto answers = ask(engine, request);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    Request urgent = sampled(random_prompt(model, 6, 2), 3);
    urgent.priority = 1;
    ask(engine, urgent);
    engine.drain();
    EXPECT_TRUE(testing::same(answers->front().prompt_logprobs, alone));
  }
}

TEST(Engine, CancellingAtAnyMomentGivesEverythingBack) {
  const LoadedModel& model = model_of("tiny");
  Engine engine(model, small());
  const std::uint32_t all = 8;
  std::mt19937_64 random(3);
  std::uint64_t aborted = 0;
  for (int round = 0; round < 30; ++round) {
    Request request = sampled(random_prompt(model, 20 + random() % 200, random()), 40);
    request.sampling.n = 1 + static_cast<std::int32_t>(random() % 2);
    std::atomic<int> seen{0};
    auto answers = std::make_shared<std::vector<Answer>>(2);
    const RequestId id = engine.submit(request, [&, answers](const Event& event) {
      (*answers)[static_cast<std::size_t>(event.choice)].add(event);
      ++seen;
    });
    const int after = static_cast<int>(random() % 4) * 8 - 8;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (seen < after && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    engine.cancel(id);
    engine.drain();
    for (std::int32_t choice = 0; choice < request.sampling.n; ++choice) {
      const Answer& answer = (*answers)[static_cast<std::size_t>(choice)];
      ASSERT_TRUE(answer.finish);
      if (*answer.finish == Finish::aborted) ++aborted;
    }
    engine.check_invariants();
    EXPECT_EQ(engine.statistics().free_blocks, all);
    expect_balanced(engine.statistics());
  }
  EXPECT_GT(aborted, 10U);
  EXPECT_EQ(engine.statistics().scheduler.preempted_dropped, 0U);
}

TEST(Engine, CancellingUnknownAndFinishedRequestsDoesNothing) {
  Engine engine(model_of("tiny"), small());
  engine.cancel(77);
  RequestId id = 0;
  id = engine.submit(sampled({0, 5}, 2), [](const Event&) {});
  engine.drain();
  engine.cancel(id);
  engine.check_invariants();
  EXPECT_EQ(engine.statistics().finished, 1U);
  EXPECT_EQ(engine.statistics().aborted, 0U);
}

TEST(Engine, ASinkMaySubmitAndCancel) {
  Engine engine(model_of("tiny"), small());
  std::shared_ptr<std::vector<Answer>> second;
  std::atomic<RequestId> first{0};
  first = engine.submit(sampled({0, 5, 6}, 200), [&](const Event& event) {
    if (event.finish || second != nullptr) return;
    second = ask(engine, sampled({0, 9}, 3));
    while (first == 0) std::this_thread::yield();
    engine.cancel(first);
  });
  engine.drain();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->front().finish, Finish::length);
  EXPECT_EQ(engine.statistics().aborted, 1U);
}

TEST(Engine, AThrowingSinkStopsTheEngineButNotTheProgram) {
  Engine engine(model_of("tiny"), small());
  const auto other = ask(engine, sampled({0, 8}, 500));
  engine.submit(sampled({0, 5, 6}, 20), [](const Event& event) {
    if (!event.finish) throw std::runtime_error("no more");
  });
  engine.drain();
  EXPECT_EQ(other->front().finish, Finish::failed);
  EXPECT_NE(other->front().error.find("no more"), std::string::npos);
  EXPECT_THROW(engine.submit(sampled({0, 5}, 2), [](const Event&) {}), WorkError);
  expect_balanced(engine.statistics());
}

TEST(Engine, ItsEndAbortsWhatIsUnfinished) {
  std::shared_ptr<std::vector<Answer>> running, waiting;
  {
    EngineOptions options = small();
    options.sequences = 1;
    Engine engine(model_of("tiny"), options);
    running = ask(engine, sampled({0, 5, 6}, 900));
    waiting = ask(engine, sampled({0, 7, 6}, 900));
  }
  EXPECT_EQ(running->front().finish, Finish::aborted);
  EXPECT_EQ(waiting->front().finish, Finish::aborted);
}

TEST(Engine, ADeadlineEndsAnAnswerWaitingOrRunning) {
  EngineOptions options = small();
  options.sequences = 1;
  Engine engine(model_of("tiny"), options);
  Request request = sampled({0, 5, 6}, 900);
  request.deadline = Clock::now() + std::chrono::milliseconds(30);
  const auto running = ask(engine, request);
  const auto waiting = ask(engine, request);
  request.deadline.reset();
  request.sampling.max_tokens = 3;
  const auto patient = ask(engine, request);
  engine.drain();
  EXPECT_EQ(running->front().finish, Finish::deadline);
  EXPECT_EQ(waiting->front().finish, Finish::deadline);
  EXPECT_EQ(patient->front().finish, Finish::length);
  EXPECT_EQ(engine.statistics().aborted, 2U);
}

TEST(Engine, RefusesWhatItCanNeverServeNamingTheField) {
  Engine engine(model_of("tiny"), small());
  const auto text = [&](auto&& change) {
    Request request = sampled({0, 5, 6}, 3);
    change(request);
    return refusal(engine, std::move(request));
  };
  EXPECT_EQ(text([](Request& r) { r.prompt.clear(); }), "prompt: expected at least one token, found none");
  EXPECT_EQ(text([](Request& r) { r.prompt[1] = 512; }),
            "prompt[1]: expected a token id below 512, found 512");
  EXPECT_EQ(text([](Request& r) { r.prompt[2] = -1; }), "prompt[2]: expected a token id below 512, found -1");
  EXPECT_NE(text([](Request& r) { r.prompt[1] = 511; }).find("images are not supported"), std::string::npos);
  EXPECT_EQ(text([](Request& r) { r.prompt.assign(1025, 5); }),
            "prompt: expected at most 1024 tokens (the context), found 1025");
  EXPECT_NE(text([](Request& r) { r.sampling.logit_bias = {{600, 1}}; }), "");
  const EngineStatistics statistics = engine.statistics();
  EXPECT_EQ(statistics.refused, 6U);
  EXPECT_EQ(statistics.admitted, 0U);
}

TEST(Engine, RefusesPromptLogprobsInReplayMode) {
  EngineOptions options = small();
  options.mode = cache::ReuseMode::replay;
  Engine engine(model_of("tiny"), options);
  Request request = sampled({0, 5, 6}, 3);
  request.sampling.prompt_logprobs = 0;
  EXPECT_NE(refusal(engine, request).find("prompt_logprobs"), std::string::npos);
}

TEST(Engine, RefusesOptionsNamingThem) {
  const auto text = [](auto&& change) {
    EngineOptions options = small();
    change(options);
    return refused_options(options);
  };
  EXPECT_NE(text([](EngineOptions& o) { o.sequences = 0; }).find("--sequences"), std::string::npos);
  EXPECT_NE(text([](EngineOptions& o) { o.sequences = -3; }).find("--sequences"), std::string::npos);
  EXPECT_NE(text([](EngineOptions& o) { o.batch_tokens = 3; }).find("--batch-tokens"), std::string::npos);
  EXPECT_NE(text([](EngineOptions& o) { o.snapshots = -2; }).find("--snapshots"), std::string::npos);
  EXPECT_NE(text([](EngineOptions& o) { o.snapshot_every = 100; }).find("--snapshot-every"),
            std::string::npos);
  EXPECT_NE(text([](EngineOptions& o) { o.cache_tokens = -5; }).find("--cache-tokens"), std::string::npos);
  EXPECT_NE(text([](EngineOptions& o) { o.context = 2000; }).find("--context"), std::string::npos);
  EXPECT_NE(text([](EngineOptions& o) { o.context = -1; }).find("--context"), std::string::npos);
  EXPECT_NE(text([](EngineOptions& o) { o.replay_keep = 5; }).find("--replay-keep"), std::string::npos);
  EXPECT_NE(text([](EngineOptions& o) {
              o.speculation = {SpeculationOptions::Kind::fixed, 50};
            }).find("--speculate"),
            std::string::npos);
  EXPECT_EQ(text([](EngineOptions&) {}), "");
}

TEST(Engine, StatisticsBalanceInEverySnapshotAndAtTheEnd) {
  const LoadedModel& model = model_of("tiny");
  EngineOptions options = small();
  options.cache_tokens = 640;
  Engine engine(model, options);
  std::atomic<bool> done{false};
  std::thread observer([&] {
    while (!done) {
      const EngineStatistics s = engine.statistics();
      EXPECT_EQ(s.admitted, s.waiting + s.running + s.finished + s.aborted);
      EXPECT_EQ(s.prompt_tokens, s.reused_tokens + s.replayed_tokens + s.computed_tokens);
      std::this_thread::yield();
    }
  });
  std::mt19937_64 random(4);
  std::uint64_t prompt = 0;
  for (int i = 0; i < 25; ++i) {
    Request request =
        sampled(random_prompt(model, 1 + random() % 150, random() % 4), 1 + random() % 20, random());
    request.sampling.n = 1 + static_cast<std::int32_t>(random() % 3);
    prompt += request.prompt.size();
    const auto answers = ask(engine, request);
    if (random() % 5 == 0) engine.cancel(1 + random() % 25);
  }
  engine.drain();
  done = true;
  observer.join();
  const EngineStatistics s = engine.statistics();
  EXPECT_EQ(s.admitted, 25U);
  EXPECT_EQ(s.finished + s.aborted, 25U);
  EXPECT_LE(s.prompt_tokens, prompt);
  engine.check_invariants();
}

// The random loads of scheduler_random_test.cpp, on the real device: threads, copies and all.
TEST(Engine, RandomLoadOnATinyPoolAnswersAsAlone) {
  const LoadedModel& model = model_of("tiny");
  std::mt19937_64 random(9);
  struct Case {
    Request request;
    std::vector<std::vector<std::int32_t>> alone;
  };
  std::vector<Case> cases;
  for (int i = 0; i < (testing::kSanitized ? 8 : 24); ++i) {
    Request request = sampled(random_prompt(model, 100, random() % 3), 1 + random() % 25, i);
    request.prompt.resize(1 + random() % 100);
    if (i % 3 == 0) request.prompt.push_back(static_cast<std::int32_t>(3 + random() % 200));
    request.sampling.n = i % 5 == 0 ? 2 : 1;
    request.priority = static_cast<int>(random() % 3);
    if (i % 4 == 0) request.cache_salt = "tenant";
    cases.push_back({std::move(request), {}});
  }
  {
    EngineOptions options = small();
    options.sequences = 1;
    options.asynchronous = false;
    options.snapshots = 0;
    Engine engine(model, options);
    for (Case& one : cases) {
      const auto answers = ask(engine, one.request);
      engine.drain();
      for (const Answer& answer : *answers) one.alone.push_back(answer.tokens);
    }
  }
  for (const bool asynchronous : {true, false}) {
    for (const std::size_t host : {std::size_t{0}, std::size_t{1} << 24}) {
      EngineOptions options = small();
      options.asynchronous = asynchronous;
      options.host_cache_bytes = host;
      options.cache_tokens = 384;
      options.snapshots = 4;
      Engine engine(model, options);
      std::vector<std::shared_ptr<std::vector<Answer>>> answers;
      std::vector<RequestId> extra;
      for (std::size_t i = 0; i < cases.size(); ++i) {
        answers.push_back(ask(engine, cases[i].request));
        if (i % 3 == 1) {
          extra.push_back(engine.submit(sampled(random_prompt(model, 90, 70 + i), 30), [](const Event&) {}));
        }
        if (i % 6 == 4) engine.cancel(extra[random() % extra.size()]);
      }
      engine.drain();
      engine.check_invariants();
      for (std::size_t i = 0; i < cases.size(); ++i) {
        for (std::size_t choice = 0; choice < cases[i].alone.size(); ++choice) {
          EXPECT_EQ((*answers[i])[choice].tokens, cases[i].alone[choice]) << "request " << i;
        }
      }
      EXPECT_EQ(engine.statistics().free_blocks, 3U);
      expect_balanced(engine.statistics());
    }
  }
}

TEST(Engine, PrefixesOnDiskServeTheNextProcess) {
  const LoadedModel& model = model_of("tiny");
  const TemporaryFolder folder;
  EngineOptions options = small();
  options.disk_cache = folder.path();
  options.host_cache_bytes = 0;
  const Request request = sampled(random_prompt(model, 300, 1), 4);
  std::vector<std::int32_t> cold;
  {
    Engine engine(model, options);
    const auto answers = ask(engine, request);
    engine.drain();
    cold = answers->front().tokens;
  }
  Engine engine(model, options);
  const auto answers = ask(engine, request);
  engine.drain();
  EXPECT_EQ(answers->front().tokens, cold);
  EXPECT_EQ(answers->front().usage.reused_tokens, 299);
  EXPECT_GT(engine.statistics().cache.reused_from_disk, 0U);
}

}  // namespace
}  // namespace thalweg::engine
