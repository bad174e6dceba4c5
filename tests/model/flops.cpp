#include "model/flops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "checkpoint/config.hpp"

namespace thalweg::model {
namespace {

const std::string data = THALWEG_SOURCE_DIR "/tests/data/";

FlopsStep step_of(const Json& c) {
  const std::string replay = c.at("replay");
  return {.rows = c.at("q"),
          .context = c.at("k"),
          .prompt = c.at("prompt"),
          .prompt_length = c.at("full_len"),
          .replay = replay == "off"    ? FlopsReplay::off
                    : replay == "mask" ? FlopsReplay::mask
                                       : FlopsReplay::compact,
          .keep = c.at("keep"),
          .window_start = c.at("swa_valid_start")};
}

/// Attention pairs and index scores row by row, which is what the closed forms stand for. Everything else is
/// linear in the rows.
std::int64_t pairs_by_summation(const FlopsShape& shape, const FlopsStep& step) {
  std::int64_t sum = 0;
  for (const FlopsShape::Layer& layer : shape.layers) {
    for (std::int64_t p = step.context - step.rows + 1; p <= step.context; ++p) {
      const std::int64_t entries = layer.ratio > 0 ? p / layer.ratio : 0;
      const std::int64_t window =
          std::max<std::int64_t>(p - std::max(p - shape.sliding_window, step.window_start), 0);
      sum += 4 * shape.heads * 2 * shape.head_dim * (window + std::min(entries, shape.index_topk));
      if (!layer.index_source) continue;
      const std::int64_t blocks = (entries + shape.candidate_block_size - 1) / shape.candidate_block_size;
      sum +=
          shape.index_heads * shape.index_head_dim *
          (layer.uses_candidates ? shape.candidate_block_size * std::min(blocks, shape.candidate_topk_blocks)
                                 : entries);
    }
  }
  return sum;
}

TEST(Flops, GoldenCasesAgreeToTheUnit) {
  const std::string file = data + "flops.json";
  const Json golden = parse_json(read_text_file(file), file);
  ASSERT_EQ(golden["cases"].size(), 12u);
  for (const Json& c : golden["cases"]) {
    const Flops flops = count_flops(released_flops_shape(), step_of(c));
    EXPECT_EQ(flops.attention, c["attention"].get<std::int64_t>()) << c;
    EXPECT_EQ(flops.total, c["total"].get<std::int64_t>()) << c;
  }
}

TEST(Flops, ShapeOfTheReleasedConfigurationIsTheBuiltInOne) {
  EXPECT_EQ(flops_shape(checkpoint::load_config(data + "released_config.json")), released_flops_shape());
}

TEST(Flops, ClosedFormsEqualSummationForEveryRatioAndBorder) {
  FlopsShape shape = released_flops_shape();
  shape.sliding_window = 7;
  shape.index_topk = 5;
  shape.candidate_topk_blocks = 3;
  shape.candidate_block_size = 4;
  shape.layers = {{.ratio = 0},
                  {.ratio = 2, .index_source = true},
                  {.ratio = 1, .index_source = true, .uses_candidates = true},
                  {.ratio = 2, .index_source = true, .uses_candidates = true}};
  for (std::int64_t context = 1; context < 60; ++context) {
    // What does not depend on positions is the same for one row anywhere: measured where nothing is visible
    // but itself.
    const FlopsStep first{.rows = 1, .context = 1};
    const std::int64_t flat = count_flops(shape, first).attention - pairs_by_summation(shape, first);
    for (std::int64_t rows = 1; rows <= context; ++rows) {
      for (const std::int64_t start : {0, 3, 40}) {
        const FlopsStep step{.rows = rows, .context = context, .window_start = start};
        ASSERT_EQ(count_flops(shape, step).attention, pairs_by_summation(shape, step) + rows * flat)
            << context << " " << rows << " " << start;
      }
    }
  }
}

TEST(Flops, ChunksOfAPromptAddUpToTheWholeButForOneRowOfLogitsEach) {
  const FlopsShape shape = released_flops_shape();
  const Flops whole = count_flops(shape, {.rows = 4096, .context = 4096, .prompt = true});
  const Flops first = count_flops(shape, {.rows = 1024, .context = 1024, .prompt = true});
  const Flops second = count_flops(shape, {.rows = 3072, .context = 4096, .prompt = true});
  EXPECT_EQ(first.attention + second.attention, whole.attention);
  EXPECT_EQ(first.total + second.total - whole.total, 4 * shape.hidden_size * shape.vocab_size);
}

TEST(Flops, KeepingTheWholePromptCostsAsMuchAsNoReplay) {
  const FlopsShape shape = released_flops_shape();
  FlopsStep step{.rows = 500, .context = 500, .prompt = true, .prompt_length = 500, .keep = 500};
  const Flops off = count_flops(shape, step);
  for (const FlopsReplay replay : {FlopsReplay::mask, FlopsReplay::compact}) {
    step.replay = replay;
    EXPECT_EQ(count_flops(shape, step).total, off.total);
  }
}

TEST(Flops, BundledCheckpointHasAnAccountToo) {
  const FlopsShape shape =
      flops_shape(checkpoint::load_config(THALWEG_SOURCE_DIR "/models/mini/config.json"));
  const Flops one = count_flops(shape, {});
  const Flops later = count_flops(shape, {.rows = 1, .context = 1000});
  EXPECT_GT(one.attention, 0);
  EXPECT_GT(one.total, one.attention);
  EXPECT_GT(later.attention, one.attention);
  EXPECT_EQ(later.total - later.attention, one.total - one.attention);
}

}  // namespace
}  // namespace thalweg::model
