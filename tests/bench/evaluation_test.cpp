// Evaluation: what it sums is what the definitions say.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/error.hpp"
#include "bench/evaluation.hpp"
#include "engine/loaded_model.hpp"
#include "engine/timeline.hpp"

namespace thalweg::bench {
namespace {

constexpr const char* kText =
    "A scheduler picks rows under a budget. Each row is one token of one sequence, and a step computes them "
    "all.";

const engine::LoadedModel& mini() {
  static const auto model = engine::load_model(std::filesystem::path(THALWEG_SOURCE_DIR) / "models/mini");
  return *model;
}

std::unique_ptr<backend::Backend> make_backend(model::Precision precision = model::Precision::reference) {
  backend::BackendOptions options;
  options.precision = precision;
  options.pages = engine::pages_for(1024);
  return backend::make_cpu_backend(mini().model, options);
}

TextOptions one_window(std::int64_t window, std::int64_t continuation) {
  TextOptions options;
  options.window = window;
  options.continuation = continuation;
  options.limit = 1;
  return options;
}

TEST(Evaluation, PerplexityIsThatOfTheLogitsOfEveryPosition) {
  const auto backend = make_backend();
  const TextResult result =
      evaluate_text(mini().tokenizer, kText, "text", {backend.get(), {}}, {}, one_window(20, 4));
  std::vector<std::int32_t> window = mini().tokenizer.encode_plain(kText);
  window.resize(19);
  window.insert(window.begin(), mini().model.config().bos_token_id);
  double loss = 0;
  std::size_t bytes = 0;
  engine::Timeline timeline(*backend);
  timeline.append(window, 1, true, [&](std::int64_t position, std::span<const float> logits) {
    const auto next = static_cast<std::size_t>(position) + 1;
    if (next == window.size()) return;
    long double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
    loss += static_cast<double>(std::log(sum)) - logits[static_cast<std::size_t>(window[next])];
    bytes += mini().tokenizer.token_bytes(window[next]).size();
  });
  EXPECT_EQ(result.windows, 1);
  EXPECT_EQ(result.whole.tokens, 19);
  EXPECT_EQ(result.whole.bytes, static_cast<std::int64_t>(bytes));
  EXPECT_NEAR(result.whole.loss, loss, 1e-4);
  EXPECT_NEAR(result.whole.perplexity(), std::exp(loss / 19), 1e-3);
  EXPECT_NEAR(result.whole.bits_per_byte(), loss / std::log(2.0) / static_cast<double>(bytes), 1e-5);
  EXPECT_FALSE(result.difference);
}

TEST(Evaluation, AComputationDiffersFromItselfInNothing) {
  const auto backend = make_backend();
  const Computation exact{backend.get(), {}};
  const TextResult result = evaluate_text(mini().tokenizer, kText, "text", exact, exact, one_window(20, 5));
  ASSERT_TRUE(result.difference);
  EXPECT_EQ(result.difference->exact.tokens, 5);
  EXPECT_EQ(result.difference->kl_max, 0);
  EXPECT_EQ(result.difference->logit_max, 0);
  EXPECT_EQ(result.difference->same_best, 5);
  EXPECT_EQ(result.difference->exact.loss, result.difference->other.loss);
}

TEST(Evaluation, ReplayOfTheWholePromptDiffersInNothingAndOfItsTailInSomething) {
  const auto backend = make_backend();
  std::string text;
  for (int i = 0; i < 12; ++i) text += kText;
  const Computation exact{backend.get(), {}};
  const auto differ = [&](std::int64_t keep) {
    return *evaluate_text(mini().tokenizer, text, "text", exact, Computation{backend.get(), keep},
                          one_window(300, 20))
                .difference;
  };
  EXPECT_EQ(differ(280).kl_max, 0);
  EXPECT_GT(differ(76).kl_max, 0);
}

TEST(Evaluation, OtherRoundingIsSeenInTheLogits) {
  const auto exact = make_backend();
  const auto other = make_backend(model::Precision::float32);
  const TextResult result = evaluate_text(mini().tokenizer, kText, "text", {exact.get(), {}},
                                          Computation{other.get(), {}}, one_window(20, 5));
  EXPECT_GT(result.difference->logit_max, 0);
  EXPECT_LT(result.difference->kl_max, 0.05);
}

TEST(Evaluation, OnlyTheWholeAnswerCounts) {
  const auto backend = make_backend();
  Task task{
      "facts",
      mini().tokenizer.encode("<｜begin▁of▁sentence｜><｜User｜>What do bees make?<｜Assistant｜></think>"),
      "Bees make honey."};
  EXPECT_TRUE(solves(mini().tokenizer, task, {backend.get(), {}}));
  for (const char* wrong : {"Bees make", "Bees make honey. ", "bees make honey.", ""}) {
    task.answer = wrong;
    EXPECT_FALSE(solves(mini().tokenizer, task, {backend.get(), {}})) << wrong;
  }
}

TEST(Evaluation, ATextShorterThanAWindowIsRefusedByName) {
  const auto backend = make_backend();
  try {
    evaluate_text(mini().tokenizer, "Short.", "short.txt", {backend.get(), {}}, {}, one_window(20, 5));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 60),
              "short.txt: expected at least 19 tokens (one window), found 4");
  }
}

}  // namespace
}  // namespace thalweg::bench
