// One sequence alone on a backend: chunks, bounded replay, drafts and what it refuses.
#include "engine/timeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "engine/loaded_model.hpp"
#include "support/device.hpp"

namespace thalweg::engine {
namespace {

class TimelineTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = load_model(std::filesystem::path(THALWEG_SOURCE_DIR) / "tests/data/tiny/model").release();
  }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }
  void SetUp() override {
    backend::BackendOptions options;
    options.device = backend::testing::kDevice;
    options.threads = 1;
    options.pages = 2;
    backend_ = backend::make_backend(model_->model, options);
    timeline_ = std::make_unique<Timeline>(*backend_);
    tokens_.resize(150);
    for (std::size_t i = 0; i < tokens_.size(); ++i) tokens_[i] = static_cast<std::int32_t>(i * 37 % 400);
  }

  // Appends everything; logits by position.
  std::map<std::int64_t, std::vector<float>> append(std::size_t chunk, bool all) {
    std::map<std::int64_t, std::vector<float>> logits;
    timeline_->append(tokens_, chunk, all, [&](std::int64_t position, std::span<const float> row) {
      logits[position].assign(row.begin(), row.end());
    });
    return logits;
  }
  std::vector<std::int32_t> draft() {
    const auto result = timeline_->draft(7, [](std::int32_t, int, std::span<const float> logits) {
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      return static_cast<std::int32_t>(best);
    });
    return {result.tokens.begin(), result.tokens.end()};
  }

  static LoadedModel* model_;
  std::unique_ptr<backend::Backend> backend_;
  std::unique_ptr<Timeline> timeline_;
  std::vector<std::int32_t> tokens_;
};

LoadedModel* TimelineTest::model_ = nullptr;

TEST_F(TimelineTest, ChunksAndStartingAgainDoNotChangeLogitsOrDrafts) {
  const auto whole = append(1000, true);
  const auto drafts = draft();
  ASSERT_EQ(whole.size(), tokens_.size());
  EXPECT_EQ(timeline_->length(), 150);
  for (const std::size_t chunk : {7, 64}) {
    timeline_->clear();
    EXPECT_EQ(append(chunk, true), whole);
    EXPECT_EQ(draft(), drafts);
  }
}

TEST_F(TimelineTest, GivesTheLastPositionAloneWhenAskedForOne) {
  const auto all = append(40, true);
  timeline_->clear();
  const auto last = append(40, false);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last.at(149), all.at(149));
}

TEST_F(TimelineTest, ReplayGivesLogitsOfTheKeptPositionsOnly) {
  std::vector<std::int64_t> positions;
  timeline_->append_replayed(tokens_, 28, 40, true, [&](std::int64_t position, std::span<const float>) {
    positions.push_back(position);
  });
  std::vector<std::int64_t> expected(28);
  std::iota(expected.begin(), expected.end(), 122);
  EXPECT_EQ(positions, expected);
}

TEST_F(TimelineTest, ReplayOfAtLeastThePromptIsExact) {
  const auto exact = append(40, true);
  timeline_->clear();
  std::map<std::int64_t, std::vector<float>> replayed;
  timeline_->append_replayed(tokens_, 500, 40, true, [&](std::int64_t position, std::span<const float> row) {
    replayed[position].assign(row.begin(), row.end());
  });
  EXPECT_EQ(replayed, exact);
}

TEST_F(TimelineTest, RefusesTokensOutsideTheVocabulary) {
  for (const std::int32_t token : {-1, 512}) {
    tokens_[3] = token;
    EXPECT_THROW(append(40, true), InputError);
    EXPECT_EQ(timeline_->length(), 0);
  }
}

TEST(PagesFor, CountsBegunPages) {
  EXPECT_EQ(pages_for(0), 0U);
  EXPECT_EQ(pages_for(1), 1U);
  EXPECT_EQ(pages_for(128), 1U);
  EXPECT_EQ(pages_for(129), 2U);
}

}  // namespace
}  // namespace thalweg::engine
