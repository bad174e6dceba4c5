// Engines on the two small checkpoints, and what a client sees of their answers.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "support/device.hpp"
#include "support/sanitized.hpp"

namespace thalweg::engine::testing {

using thalweg::testing::kSanitized;

/// "mini" or "tiny", loaded once a program.
inline const LoadedModel& model_of(const std::string& name) {
  static std::map<std::string, std::unique_ptr<LoadedModel>> loaded;
  std::unique_ptr<LoadedModel>& model = loaded[name];
  const std::filesystem::path source(THALWEG_SOURCE_DIR);
  if (model == nullptr)
    model = load_model(name == "mini" ? source / "models/mini" : source / "tests/data/tiny/model");
  return *model;
}

/// Default options on the device that the program tests.
inline EngineOptions device_options() {
  EngineOptions options;
  options.device = backend::testing::kDevice;
  return options;
}

/// Ids without control tokens, the same for the same seed.
inline std::vector<std::int32_t> random_prompt(const LoadedModel& model, std::size_t length,
                                               std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> prompt{model.model.config().bos_token_id};
  const auto bound = static_cast<std::uint64_t>(model.model.config().vocab_size - 64);
  while (prompt.size() < length) prompt.push_back(static_cast<std::int32_t>(3 + random() % (bound - 3)));
  prompt.resize(length);
  return prompt;
}

/// All that a client sees of one answer.
struct Answer {
  std::vector<std::int32_t> tokens;
  std::vector<RowLogprobs> logprobs;
  std::vector<RowLogprobs> prompt_logprobs;
  std::string text;
  std::string stop;
  std::string error;
  std::optional<Finish> finish;
  Usage usage;

  void add(const Event& event) {
    ASSERT_FALSE(finish) << "an event after the last one";
    if (event.token) tokens.push_back(*event.token);
    if (event.logprobs != nullptr) logprobs.push_back(event.logprobs->raw);
    if (event.prompt_logprobs != nullptr) prompt_logprobs = *event.prompt_logprobs;
    text += event.text;
    finish = event.finish;
    stop = event.stop_string;
    error = event.error;
    usage = event.usage;
  }
};

/// Bit for bit.
inline bool same(const std::vector<RowLogprobs>& a, const std::vector<RowLogprobs>& b) {
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  return std::ranges::equal(a, b, [&](const RowLogprobs& x, const RowLogprobs& y) {
    return bits(x.chosen) == bits(y.chosen) &&
           std::ranges::equal(x.top, y.top, [&](const TokenLogprob& s, const TokenLogprob& t) {
             return s.token == t.token && bits(s.logprob) == bits(t.logprob);
           });
  });
}

/// Submits and collects; the vector (one entry an answer) is complete after `drain`.
inline std::shared_ptr<std::vector<Answer>> ask(Engine& engine, Request request,
                                                std::function<void(const Event&)> also = {}) {
  auto answers = std::make_shared<std::vector<Answer>>(static_cast<std::size_t>(request.sampling.n));
  engine.submit(std::move(request), [answers, also = std::move(also)](const Event& event) {
    (*answers)[static_cast<std::size_t>(event.choice)].add(event);
    if (also) also(event);
  });
  return answers;
}

/// A sampled request of `max_tokens` tokens that end of sequence does not shorten.
inline Request sampled(std::vector<std::int32_t> prompt, std::int64_t max_tokens, std::uint64_t seed = 5) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.max_tokens = max_tokens;
  request.sampling.seed = seed;
  request.sampling.ignore_eos = true;
  return request;
}

inline void expect_balanced(const EngineStatistics& s) {
  EXPECT_EQ(s.admitted, s.waiting + s.running + s.finished + s.aborted);
  EXPECT_EQ(s.prompt_tokens, s.reused_tokens + s.replayed_tokens + s.computed_tokens);
}

}  // namespace thalweg::engine::testing
