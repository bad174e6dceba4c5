// The library as its users see it: only what include/thalweg declares.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>

#include "thalweg/thalweg.h"
#include "thalweg/thalweg.hpp"

namespace {

const std::string kMini = std::string(THALWEG_SOURCE_DIR) + "/models/mini";

thalweg::Request greedy(const std::string& prompt, std::int64_t tokens) {
  thalweg::Request request;
  request.prompt = prompt;
  request.max_tokens = tokens;
  request.temperature = 0;
  return request;
}

TEST(Api, AnswersAsEventsOfWhichTheLastSaysHowItEnded) {
  thalweg::Engine engine({.model = kMini});
  std::string text;
  std::vector<std::int32_t> tokens;
  int finished = 0;
  const std::uint64_t id = engine.submit(greedy("The first line of", 12), [&](const thalweg::Event& event) {
    text += event.text;
    if (event.token) tokens.push_back(*event.token);
    if (!event.finish) return;
    ++finished;
    EXPECT_EQ(*event.finish, thalweg::Finish::length);
    EXPECT_EQ(event.output_tokens, 12);
    EXPECT_EQ(event.prompt_tokens, 5);
  });
  EXPECT_GT(id, 0U);
  engine.drain();
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(tokens.size(), 12U);
  EXPECT_EQ(engine.detokenize(tokens), text);
  EXPECT_EQ(engine.statistics().finished, 1U);
  EXPECT_NE(engine.describe().find("cpu"), std::string::npos);
}

TEST(Api, TextAndItsTokensGiveTheSameAnswer) {
  thalweg::Engine engine({.model = kMini});
  std::array<std::string, 2> texts;
  thalweg::Request request = greedy("Rivers flow", 10);
  engine.submit(request, [&](const thalweg::Event& event) { texts[0] += event.text; });
  request.tokens = engine.tokenize(request.prompt);
  request.tokens.insert(request.tokens.begin(), 0);
  request.prompt.clear();
  engine.submit(request, [&](const thalweg::Event& event) { texts[1] += event.text; });
  engine.drain();
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(Api, FailuresNameTheirKindAndTheField) {
  const auto kind = [](const thalweg::Options& options) {
    try {
      thalweg::Engine engine(options);
    } catch (const thalweg::Failure& failure) {
      return failure.kind();
    }
    return thalweg::Failure::Kind::work;
  };
  EXPECT_EQ(kind({.model = "/no/such/folder"}), thalweg::Failure::Kind::input);
  EXPECT_EQ(kind({.model = kMini, .sequences = 0}), thalweg::Failure::Kind::options);
  EXPECT_EQ(kind({.model = kMini, .speculate = "wildly"}), thalweg::Failure::Kind::options);
  thalweg::Engine engine({.model = kMini});
  thalweg::Request request = greedy("x", 5);
  request.temperature = 9;
  try {
    engine.submit(request, [](const thalweg::Event&) {});
    FAIL();
  } catch (const thalweg::Failure& failure) {
    EXPECT_EQ(failure.kind(), thalweg::Failure::Kind::input);
    EXPECT_NE(std::string(failure.what()).find("temperature"), std::string::npos);
  }
  request = greedy("x", 5);
  request.tokens = {0};
  EXPECT_THROW(engine.submit(request, [](const thalweg::Event&) {}), thalweg::Failure);
}

TEST(Api, CancelledAndAbandonedRequestsEndAsAborted) {
  std::atomic<int> aborted{0};
  {
    thalweg::Engine engine({.model = kMini});
    thalweg::Request request = greedy("Once upon a time", 2000);
    request.ignore_eos = true;
    const auto sink = [&](const thalweg::Event& event) {
      if (event.finish == thalweg::Finish::aborted) ++aborted;
    };
    engine.cancel(engine.submit(request, sink));
    engine.drain();
    EXPECT_EQ(aborted, 1);
    engine.submit(request, sink);
    thalweg::Engine moved = std::move(engine);
  }
  EXPECT_EQ(aborted, 2);
}

struct Collected {
  std::string text;
  thalweg_finish finish = THALWEG_UNFINISHED;
};

void collect(const thalweg_event* event, void* user) {
  auto* collected = static_cast<Collected*>(user);
  collected->text.append(event->text, event->text_size);
  collected->finish = event->finish;
}

TEST(Api, CInterfaceGivesWhatTheCppInterfaceGives) {
  std::string text;
  {
    thalweg::Engine engine({.model = kMini});
    thalweg::Request request = greedy("A list of", 14);
    request.stop = {"zzz"};
    engine.submit(request, [&](const thalweg::Event& event) { text += event.text; });
    engine.drain();
  }
  std::array<char, 200> error{};
  thalweg_options options = thalweg_default_options();
  options.model = kMini.c_str();
  thalweg_engine* engine = thalweg_open(&options, error.data(), error.size());
  ASSERT_NE(engine, nullptr) << error.data();
  thalweg_request request = thalweg_default_request();
  request.prompt = "A list of";
  request.max_tokens = 14;
  request.temperature = 0;
  const char* stop[] = {"zzz"};
  request.stop = stop;
  request.stop_count = 1;
  Collected collected;
  EXPECT_NE(thalweg_submit(engine, &request, collect, &collected, error.data(), error.size()), 0U)
      << error.data();
  thalweg_drain(engine);
  EXPECT_EQ(collected.text, text);
  EXPECT_EQ(collected.finish, THALWEG_LENGTH);
  thalweg_statistics statistics;
  thalweg_get_statistics(engine, &statistics);
  EXPECT_EQ(statistics.admitted, 1U);
  EXPECT_EQ(statistics.output_tokens, 14U);
  request.n = 0;
  EXPECT_EQ(thalweg_submit(engine, &request, collect, &collected, error.data(), error.size()), 0U);
  EXPECT_EQ(std::string(error.data()).substr(0, 2), "n:");
  std::array<char, 8> small{};
  EXPECT_EQ(thalweg_submit(engine, &request, collect, &collected, small.data(), small.size()), 0U);
  EXPECT_EQ(std::string(small.data()).size(), 7U);
  thalweg_close(engine);
  thalweg_close(nullptr);
  options.model = nullptr;
  EXPECT_EQ(thalweg_open(&options, nullptr, 0), nullptr);
}

TEST(Api, HeadersIncludeTheStandardLibraryOnly) {
  for (const char* name : {"thalweg.h", "thalweg.hpp"}) {
    std::ifstream file(std::string(THALWEG_SOURCE_DIR) + "/include/thalweg/" + name);
    ASSERT_TRUE(file);
    for (std::string line; std::getline(file, line);)
      EXPECT_NE(line.rfind("#include \"", 0), 0U) << name << ": " << line;
  }
}

TEST(Api, TheExampleInCRunsAsItsFirstLineSays) {
  const std::string command = std::string(THALWEG_EXAMPLE) + " '" + kMini + "' 'The first line of' 8 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  for (std::array<char, 256> part{}; std::fgets(part.data(), part.size(), pipe) != nullptr;)
    output += part.data();
  EXPECT_EQ(::pclose(pipe), 0) << output;
  std::string text;
  thalweg::Engine engine({.model = kMini});
  engine.submit(greedy("The first line of", 8), [&](const thalweg::Event& event) { text += event.text; });
  engine.drain();
  EXPECT_EQ(output, text + "\n");
}

}  // namespace
