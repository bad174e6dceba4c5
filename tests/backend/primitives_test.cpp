// Single operations of the CPU backend against golden vectors and their definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "backend/cpu/experts.hpp"
#include "backend/cpu/index_select.hpp"
#include "backend/cpu/mix.hpp"
#include "backend/cpu/norm.hpp"
#include "backend/cpu/rotary.hpp"
#include "backend/golden.hpp"
#include "backend/steps.hpp"

namespace thalweg::backend::cpu {
namespace {

using testing::GoldenFile;
using testing::primitive;

void expect_close(const std::vector<float>& actual, const std::vector<float>& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], tolerance) << i;
}

class Rotary : public ::testing::Test {
 protected:
  const GoldenFile file_ = primitive("rope");
  const std::vector<std::int64_t> positions_ = file_.integers("positions");
  const std::vector<float> frequencies_ = file_.floats("compressed_inv_freq");
};

TEST_F(Rotary, TurnsTheLastChannelsByTheGoldenAngles) {
  auto x = file_.floats("apply_input");
  const std::size_t width = 96;
  const std::size_t vectors = x.size() / positions_.size() / width;
  auto turned = x;
  for (std::size_t i = 0; i < turned.size() / width; ++i) {
    Rotation(positions_[i / vectors], frequencies_).apply(turned.data() + i * width, width);
  }
  expect_close(turned, file_.floats("apply_compressed"), 2e-6);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % width < width - 64) {
      ASSERT_EQ(turned[i], x[i]) << "only the last 64 channels turn";
    }
  }
  for (std::size_t i = 0; i < turned.size() / width; ++i) {
    Rotation(positions_[i / vectors], frequencies_).undo(turned.data() + i * width, width);
  }
  expect_close(turned, file_.floats("apply_compressed_then_inverse"), 2e-6);
}

TEST_F(Rotary, CosinesAndSinesAreThoseOfTheFloatAngle) {
  for (const char* kind : {"window", "compressed"}) {
    const auto frequencies = file_.floats(std::string(kind) + "_inv_freq");
    const auto cosines = file_.floats(std::string(kind) + "_cos");
    const auto sines = file_.floats(std::string(kind) + "_sin");
    for (std::size_t p = 0; p < positions_.size(); ++p) {
      const Rotation rotation(positions_[p], frequencies);
      std::vector<float> x(2 * frequencies.size(), 0.0F);
      for (std::size_t i = 0; i < frequencies.size(); ++i) x[2 * i] = 1.0F;  // (1, 0) turns to (cos, sin)
      rotation.apply(x.data(), x.size());
      for (std::size_t i = 0; i < frequencies.size(); ++i) {
        ASSERT_NEAR(x[2 * i], cosines[p * frequencies.size() + i], 1e-7) << kind << " " << positions_[p];
        ASSERT_NEAR(x[2 * i + 1], sines[p * frequencies.size() + i], 1e-7) << kind << " " << positions_[p];
      }
    }
  }
}

// The mixing matrices of many logits, streams and iterations.
void expect_sinkhorn(const char* logits_name, const char* result_name, int streams, int iterations) {
  const GoldenFile file = primitive("sinkhorn");
  const auto logits = file.floats(logits_name);
  const auto size = static_cast<std::size_t>(streams) * streams;
  std::vector<float> combs;
  for (std::size_t at = 0; at < logits.size(); at += size) {
    std::vector<float> row(2 * static_cast<std::size_t>(streams), 0.0F);
    row.insert(row.end(), logits.begin() + static_cast<std::ptrdiff_t>(at),
               logits.begin() + static_cast<std::ptrdiff_t>(at + size));
    std::vector<float> pre(streams);
    std::vector<float> post(streams);
    std::vector<float> comb(size);
    mix_row(row.data(), streams, iterations, 1e-6F, pre.data(), post.data(), comb.data());
    combs.insert(combs.end(), comb.begin(), comb.end());
  }
  expect_close(combs, file.floats(result_name), 1e-6);
}

TEST(Mix, SinkhornEqualsTheGoldenMatricesForEveryNumberOfIterations) {
  expect_sinkhorn("logits", "out_1", 4, 1);
  expect_sinkhorn("logits", "out_2", 4, 2);
  expect_sinkhorn("logits", "out_7", 4, 7);
  expect_sinkhorn("logits", "out_20", 4, 20);
  expect_sinkhorn("logits_2x2", "out_2x2_20", 2, 20);
}

Rows to_rows(const std::vector<float>& values, std::size_t rows) {
  Rows result;
  result.resize(rows, values.size() / rows);
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

std::vector<float> values_of(const Rows& rows) {
  return {rows.data(), rows.data() + rows.size()};
}

TEST(Mix, ASiteOfHyperConnectionsEqualsTheGoldenOne) {
  const GoldenFile file = primitive("hyper_connection");
  const std::size_t rows = file.rows("streams");
  // Its four streams, 20 iterations and epsilons are those of this configuration.
  const model::Model& model = testing::load_model(testing::source_directory() / "tests/data/tiny/model");
  ThreadPool pool(1);
  const Context context{model, pool, Rounding(model::Precision::float32)};
  Linear linear(context);
  const auto fn = file.floats("fn");
  const auto base = file.floats("base");
  const auto scale = file.floats("scale");
  Rows h = to_rows(file.floats("streams"), rows);
  Rows products;
  MixCoefficients mix;
  mix_coefficients(context, linear, {fn, base, scale}, h, products, mix);
  expect_close(values_of(mix.pre), file.floats("pre"), 1e-6);
  expect_close(values_of(mix.post), file.floats("post"), 2e-6);
  expect_close(values_of(mix.comb), file.floats("comb"), 1e-6);
  Rows x;
  collapse(context, h, to_rows(file.floats("given_pre"), rows), x);
  expect_close(values_of(x), file.floats("collapsed"), 1e-6);
  expand(context, to_rows(file.floats("sublayer_output"), rows), mix, h);
  expect_close(values_of(h), file.floats("expanded"), 4e-6);
}

TEST(Router, ChoosesAndWeighsExpertsAsTheGoldenVectors) {
  const GoldenFile file = primitive("gate");
  const auto logits = file.floats("logits");
  const auto image = file.integers("image_token");
  const auto bias = file.floats("bias");
  const auto bias_vl = file.floats("bias_vl");
  constexpr std::size_t kExperts = 16;
  for (const std::size_t count : {3U, 1U}) {
    const auto ids = file.integers(count == 3 ? "ids" : "top1_ids");
    const auto expected = file.floats(count == 3 ? "weights" : "top1_weights_normalised");
    for (std::size_t row = 0; row < image.size(); ++row) {
      const auto first = logits.begin() + static_cast<std::ptrdiff_t>(row * kExperts);
      std::vector<float> scores(first, first + kExperts);
      std::vector<std::int32_t> chosen(count);
      std::vector<float> weights(count);
      const auto& biases = image[row] != 0 && count == 3 ? bias_vl : bias;
      route(scores.data(), kExperts, biases.data(), count, 1.5F, chosen.data(), weights.data());
      for (std::size_t k = 0; k < count; ++k) {
        ASSERT_EQ(chosen[k], ids[row * count + k]) << row;
        ASSERT_NEAR(weights[k], expected[row * count + k], 1e-6) << row;
      }
    }
  }
}

TEST(Router, GivesTiesToTheLowerExpert) {
  std::vector<float> scores = {0.5F, 2.0F, 2.0F, 0.5F, 2.0F};
  const std::vector<float> bias(5, 0.0F);
  std::int32_t chosen[4];
  float weights[4];
  route(scores.data(), 5, bias.data(), 4, 1.0F, chosen, weights);
  EXPECT_EQ(std::vector<std::int32_t>(chosen, chosen + 4), (std::vector<std::int32_t>{1, 2, 4, 0}));
  EXPECT_EQ(weights[0], weights[2]);
}

TEST(Router, WeighsByTheScoreAloneAndChoosesByScoreAndBias) {
  std::vector<float> scores = {1.0F, 1.0F, -3.0F};
  const std::vector<float> bias = {0.0F, 0.0F, 9.0F};
  std::int32_t chosen[3];
  float weights[3];
  route(scores.data(), 3, bias.data(), 3, 2.0F, chosen, weights);
  EXPECT_EQ(chosen[0], 2);
  EXPECT_LT(weights[0], weights[1]);
  EXPECT_NEAR(weights[0] + weights[1] + weights[2], 2.0F, 1e-6);
}

TEST(Router, TakesLargeLogitsAsTheirOwnSoftplus) {
  std::vector<float> scores = {1e4F, 100.0F, 21.0F};
  const std::vector<float> bias(3, 0.0F);
  std::int32_t chosen[3];
  float weights[3];
  route(scores.data(), 3, bias.data(), 3, 1.0F, chosen, weights);
  const double sum = 100 + 10 + std::sqrt(21.0);
  EXPECT_NEAR(weights[0], 100 / sum, 1e-6);
  EXPECT_NEAR(weights[2], std::sqrt(21.0) / sum, 1e-6);
}

TEST(Experts, SwigluClampsBothHalvesAsTheGoldenVectors) {
  const GoldenFile file = primitive("swiglu_norm");
  const auto gate_up = file.floats("gate_up");
  const auto weights = file.floats("router_weight");
  constexpr std::size_t kWidth = 32;
  std::vector<float> result;
  for (std::size_t row = 0; row < weights.size(); ++row) {
    const auto first = gate_up.begin() + static_cast<std::ptrdiff_t>(2 * kWidth * row);
    std::vector<float> gate(first, first + kWidth);
    const std::vector<float> up(first + kWidth, first + 2 * kWidth);
    swiglu(gate.data(), up.data(), kWidth, 2.5F, weights[row]);
    result.insert(result.end(), gate.begin(), gate.end());
  }
  expect_close(result, file.floats("expert_activation_limit_2_5"), 2e-6);
}

TEST(Norm, RmsNormEqualsTheGoldenVectors) {
  const GoldenFile file = primitive("swiglu_norm");
  const auto weights = file.floats("norm_weight");
  std::vector<std::uint16_t> weight;
  for (const float w : weights) weight.push_back(numeric::to_bf16(w));
  const std::tuple<const char*, const char*, float> cases[] = {
      {"norm_input", "norm_output_eps_1e-20", 1e-20F},
      {"small_norm_input", "small_norm_output_eps_1e-20", 1e-20F},
      {"small_norm_input", "small_norm_output_eps_1e-6", 1e-6F}};
  for (const auto& [input, output, eps] : cases) {
    auto x = file.floats(input);
    for (std::size_t row = 0; row < x.size() / weight.size(); ++row) {
      rms_norm(x.data() + row * weight.size(), weight, eps);
    }
    // The golden weights are not bfloat16 values, as a checkpoint's are.
    auto expected = file.floats(output);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::size_t d = i % weight.size();
      expected[i] = static_cast<float>(double{expected[i]} / weights[d] * numeric::from_bf16(weight[d]));
    }
    expect_close(x, expected, 2e-6);
  }
}

TEST(Selection, CandidatesAndTopEntriesEqualTheGoldenSets) {
  const GoldenFile file = primitive("selection");
  const auto all = file.floats("scores");
  const auto visible = file.integers("visible");
  const auto candidates = file.integers("candidates");
  const auto top = file.integers("top5_within_candidates");
  constexpr std::size_t kEntries = 20;
  constexpr std::size_t kBlock = 4;
  for (std::size_t q = 0; q < visible.size(); ++q) {
    const std::span<const float> scores(all.data() + q * kEntries, static_cast<std::size_t>(visible[q]));
    if (scores.empty()) continue;
    std::vector<std::int64_t> blocks;
    candidate_blocks(scores, kBlock, 3, blocks);
    std::vector<std::int64_t> inside;  // entries of the candidate blocks, and their scores
    std::vector<float> inside_scores;
    for (std::size_t j = 0; j < scores.size(); ++j) {
      const auto block = static_cast<std::int64_t>(j / kBlock);
      const bool taken = blocks.empty() || std::find(blocks.begin(), blocks.end(), block) != blocks.end();
      ASSERT_EQ(taken, candidates[q * kEntries + j] != 0) << "query " << q << ", entry " << j;
      if (!taken) continue;
      inside.push_back(static_cast<std::int64_t>(j));
      inside_scores.push_back(scores[j]);
    }
    std::vector<std::uint64_t> places;
    best_places(inside_scores, 5, places);
    std::set<std::int64_t> chosen;
    for (const std::uint64_t place : places) chosen.insert(inside[place]);
    std::set<std::int64_t> expected(top.begin() + static_cast<std::ptrdiff_t>(5 * q),
                                    top.begin() + static_cast<std::ptrdiff_t>(5 * q + 5));
    expected.erase(-1);
    ASSERT_EQ(chosen, expected) << "query " << q;
  }
}

TEST(Selection, EqualScoresGoToTheLowerPlace) {
  std::vector<std::uint64_t> places;
  best_places(std::vector<float>{0.0F, -0.0F, 3.0F, 0.0F, -1.0F, 3.0F}, 4, places);
  EXPECT_EQ(places, (std::vector<std::uint64_t>{0, 1, 2, 5}));
}

TEST(Selection, FewerScoresThanWantedAreAllTaken) {
  std::vector<std::uint64_t> places;
  best_places(std::vector<float>{2.0F, -5.0F}, 7, places);
  EXPECT_EQ(places, (std::vector<std::uint64_t>{0, 1}));
}

TEST(Selection, TheNewestBlockIsACandidateEvenIfItScoresWorst) {
  std::vector<std::int64_t> blocks;
  candidate_blocks(std::vector<float>{5, 5, 9, 9, 7, 7, -8}, 2, 2, blocks);
  EXPECT_EQ(blocks, (std::vector<std::int64_t>{1, 3}));
}

}  // namespace
}  // namespace thalweg::backend::cpu
