// The engine's benchmarks run what they say they run.
#include <gtest/gtest.h>

#include <filesystem>

#include "bench/engine_bench.hpp"

namespace thalweg::bench {
namespace {

const engine::LoadedModel& mini() {
  static const auto model = engine::load_model(std::filesystem::path(THALWEG_SOURCE_DIR) / "models/mini");
  return *model;
}

TEST(EngineBench, DecodesAsManyAnswersOfTheLengthAskedFor) {
  const std::vector<BenchPrompt> prompts = {{"a", {0, 300, 301}}, {"b", {0, 400}}};
  DecodeLoad load;
  load.requests = 2;
  load.answers = 5;
  load.max_tokens = 7;
  load.ignore_eos = true;
  const DecodeFigures figures = run_decode(mini(), {}, prompts, load);
  EXPECT_EQ(figures.output_tokens, 35);
  EXPECT_EQ(figures.prompt_tokens, 3 * 3 + 2 * 2);
  EXPECT_EQ(figures.statistics.finished, 5U);
  EXPECT_EQ(figures.statistics.draws, 35U);
  EXPECT_EQ(figures.tokens_per_draw(), 1);
  EXPECT_GT(figures.tokens_per_second(), 0);
}

TEST(EngineBench, EveryDrawGivesOneTokenAndTheAcceptedDrafts) {
  DecodeLoad load;
  load.answers = 1;
  load.max_tokens = 40;
  load.ignore_eos = true;
  engine::EngineOptions options;
  options.speculation = engine::parse_speculation("fixed:5");
  const DecodeFigures figures = run_decode(mini(), options, {{"a", {0, 300, 301}}}, load);
  const engine::EngineStatistics& s = figures.statistics;
  EXPECT_EQ(s.draws + s.drafts_accepted, 40U);
  std::uint64_t accepted = 0;
  for (std::size_t i = 0; i < s.drafts_tried_at.size(); ++i) {
    accepted += s.drafts_accepted_at[i];
    // Fewer where the answer's end left no room for further drafts.
    if (i > 0) {
      EXPECT_LE(s.drafts_tried_at[i], s.drafts_accepted_at[i - 1]) << i;
    }
    if (i >= 5) {
      EXPECT_EQ(s.drafts_tried_at[i], 0U) << i;
    }
  }
  EXPECT_EQ(accepted, s.drafts_accepted);
}

TEST(EngineBench, AResumedPromptIsComputedNoSecondTime) {
  engine::Engine engine(mini(), {});
  std::vector<std::int32_t> prompt(300, 500);
  const ResumeFigures figures = run_resume(engine, prompt);
  EXPECT_EQ(figures.reused_tokens, 299);
  EXPECT_GT(figures.cold, 0);
  EXPECT_GT(figures.resumed, 0);
}

TEST(Median, IsTheMiddleOne) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2);
  EXPECT_EQ(median({7}), 7);
}

}  // namespace
}  // namespace thalweg::bench
