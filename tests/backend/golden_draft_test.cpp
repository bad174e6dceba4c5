// Drafts, bounded replay and greedy generations against the golden data.
#include <gtest/gtest.h>

#include "backend/golden_trace.hpp"
#include "backend/steps.hpp"

namespace thalweg::backend {
namespace {

using model::Precision;
using testing::advance;
using testing::argmax;
using testing::distance;
using testing::find_data;
using testing::GoldenFile;
using testing::load_model;
using testing::make_backend;
using testing::make_sequence;
using testing::margin;
using testing::Recorder;

constexpr double kTolerance = 3e-4;
constexpr float kNearTie = 1e-3F;  // below this margin the choice of a token says nothing

class GoldenPrompt : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    const auto& [set, prompt] = GetParam();
    THALWEG_REQUIRE_DATA(set);
    if (testing::kSanitized && (prompt == "long" || set == "realheads")) {
      GTEST_SKIP() << "long case, left out with sanitizers";
    }
    folder_ = *find_data(set);
    file_ = std::make_unique<GoldenFile>(folder_ / "prompts" / (prompt + ".safetensors"));
    sequence_ = make_sequence(file_->ids("input_ids"));
    model_ = &load_model(folder_ / "model");
  }
  std::filesystem::path folder_;
  std::unique_ptr<GoldenFile> file_;
  testing::Sequence sequence_;
  const model::Model* model_ = nullptr;
};

TEST_P(GoldenPrompt, ItsDraftEqualsTheFloat32Reference) {
  const auto backend = make_backend(*model_, Precision::float32, sequence_.pages.size());
  Recorder recorder(model_->config().layers);
  backend->observe(&recorder);
  const std::int32_t anchor = argmax(advance(*backend, sequence_, 100).back());
  ASSERT_EQ(anchor, file_->ids("draft.anchor_id")[0]);
  const auto drafts = testing::draft(*backend, {{&sequence_, anchor}})[0];
  EXPECT_EQ(drafts.tokens, file_->ids("draft.tokens"));
  std::vector<float> margins;
  for (const auto& logits : drafts.logits) margins.push_back(margin(logits));
  EXPECT_LE(distance(margins, file_->floats("draft.margins")), kTolerance);
  EXPECT_LE(distance(drafts.confidence, file_->floats("draft.confidence_logit")), kTolerance);
  testing::expect_tensors(*file_, recorder, sequence_.tokens.size(), kTolerance, [](const std::string& name) {
    return name == "draft.features" || name == "draft.main_hidden" || name == "draft.collapsed" ||
           name == "draft.normalized" || name == "draft.base_logits" || name == "draft.markov_logits";
  });
}

TEST_P(GoldenPrompt, ItsDraftEqualsTheReferenceWithRoundedCaches) {
  const auto& [set, prompt] = GetParam();
  if (prompt == "long" || prompt == "len100") GTEST_SKIP() << "roundings may have flipped by then";
  const auto backend = make_backend(*model_, Precision::cache, sequence_.pages.size());
  advance(*backend, sequence_, 100);
  const auto drafts = testing::draft(*backend, {{&sequence_, file_->ids("draft.anchor_id")[0]}})[0];
  const auto expected = file_->floats("draft.logits_cacheq");
  const std::size_t vocab = drafts.logits[0].size();
  for (std::size_t i = 0; i < drafts.logits.size(); ++i) {
    EXPECT_LE(distance(drafts.logits[i], {expected.data() + i * vocab, vocab}), 1e-3) << "slot " << i;
    // From here on the reference and the engine may condition on different tokens.
    if (argmax(drafts.logits[i]) != argmax({expected.data() + i * vocab, vocab})) break;
  }
}

TEST_P(GoldenPrompt, BoundedReplayEqualsTheReference) {
  if (!file_->has("replay.logits")) GTEST_SKIP() << "no replay is stored for this prompt";
  const auto backend = make_backend(*model_, Precision::float32, sequence_.pages.size());
  const auto length = static_cast<std::int64_t>(sequence_.tokens.size());
  sequence_.decoder_floor = length - file_->integers("replay.keep_tokens")[0];
  const auto logits = advance(*backend, sequence_, 100);
  ASSERT_EQ(static_cast<std::int64_t>(logits.size()), length - sequence_.decoder_floor);
  const auto expected = file_->floats("replay.logits");
  const std::size_t rows = file_->rows("replay.logits");
  const std::size_t vocab = logits[0].size();
  for (std::size_t i = 0; i < rows; ++i) {
    EXPECT_LE(distance(logits[logits.size() - rows + i], {expected.data() + i * vocab, vocab}), kTolerance)
        << "row " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Data, GoldenPrompt,
                         ::testing::Combine(::testing::ValuesIn(testing::kDataSets),
                                            ::testing::Values("len1", "len2", "len17", "len100", "long")),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param);
                         });

class GoldenGeneration : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { THALWEG_REQUIRE_DATA(GetParam()); }
};

void expect_draft(const testing::Drafts& drafts, const GoldenFile& file, const std::string& prefix,
                  std::size_t step) {
  const std::size_t block = drafts.tokens.size();
  const auto tokens = file.ids(prefix + "draft_tokens");
  const auto margins = file.floats(prefix + "draft_margin");
  const auto confidence = file.floats(prefix + "draft_confidence_logit");
  for (std::size_t i = 0; i < block; ++i) {
    const std::size_t at = step * block + i;
    ASSERT_NEAR(drafts.confidence[i], confidence[at], kTolerance) << prefix << step << ", slot " << i;
    ASSERT_NEAR(margin(drafts.logits[i]), margins[at], kTolerance) << prefix << step << ", slot " << i;
    if (margins[at] < kNearTie) return;
    ASSERT_EQ(drafts.tokens[i], tokens[at]) << prefix << step << ", slot " << i;
  }
}

// Token by token, as decoding does it, with a draft before every step.
TEST_P(GoldenGeneration, TokensMarginsAndTheDraftsOfEveryStepEqualTheReference) {
  const auto folder = *find_data(GetParam());
  const GoldenFile file(folder / "generate.safetensors");
  const model::Model& model = load_model(folder / "model");
  const int generations = testing::kSanitized ? 1 : 3;
  for (int g = 0; g < generations; ++g) {
    const std::string prefix = "gen" + std::to_string(g) + ".";
    const auto tokens = file.ids(prefix + "tokens");
    const auto margins = file.floats(prefix + "margin");
    const auto prompt = file.ids(prefix + "prompt");
    auto sequence = make_sequence(prompt);
    sequence.pages = make_sequence(std::vector<std::int32_t>(prompt.size() + tokens.size())).pages;
    const auto backend = make_backend(model, Precision::float32, sequence.pages.size());
    auto logits = advance(*backend, sequence).back();
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      ASSERT_NEAR(margin(logits), margins[t], kTolerance) << prefix << t;
      if (margins[t] < kNearTie) break;
      ASSERT_EQ(argmax(logits), tokens[t]) << prefix << t;
      expect_draft(testing::draft(*backend, {{&sequence, tokens[t]}})[0], file, prefix, t);
      if (HasFatalFailure()) return;
      sequence.tokens.push_back(tokens[t]);
      logits = advance(*backend, sequence).back();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Data, GoldenGeneration, ::testing::ValuesIn(testing::kDataSets),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace thalweg::backend
