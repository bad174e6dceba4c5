// What a model refuses: a tokenizer that does not fit its Engram tables.
#include "model/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.hpp"

namespace thalweg::model {
namespace {

using ::testing::HasSubstr;

Model tiny(std::vector<std::int32_t> vocabulary) {
  checkpoint::LoadOptions options;
  options.check_codes = false;
  options.threads = 1;
  const auto folder = std::filesystem::path(THALWEG_SOURCE_DIR) / "tests/data/tiny/model";
  return Model(checkpoint::Checkpoint::load(folder, options), std::move(vocabulary));
}

// Ids 0 ... classes - 1, then the last class again: `size` tokens in `classes` classes.
std::vector<std::int32_t> vocabulary(std::size_t size, std::int32_t classes) {
  std::vector<std::int32_t> ids(size);
  for (std::size_t i = 0; i < size; ++i) ids[i] = std::min(static_cast<std::int32_t>(i), classes - 1);
  return ids;
}

std::string refusal(std::vector<std::int32_t> ids) {
  try {
    tiny(std::move(ids));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Model, RefusesAnotherNumberOfCompressedIdsThanTheConfigurationHas) {
  const std::string message = refusal(vocabulary(512, 438));
  EXPECT_THAT(message, HasSubstr("tokenizer.json"));
  EXPECT_THAT(message, HasSubstr("439"));
  EXPECT_THAT(message, HasSubstr("438"));
}

TEST(Model, RefusesMoreIdsThanTheEmbeddingHas) {
  EXPECT_THAT(refusal(vocabulary(513, 439)), HasSubstr("at most 512 ids"));
}

TEST(Model, RefusesATokenizerWithoutThePadToken) {
  EXPECT_THAT(refusal({}), HasSubstr("engram_pad_token_id 2"));
}

TEST(Model, TakesIdsThatTheTokenizerDoesNotKnowAsPadding) {
  const Model model = tiny(vocabulary(500, 439));
  ASSERT_EQ(model.engram_vocabulary().size(), 512U);
  EXPECT_EQ(model.engram_vocabulary()[499], 438);
  EXPECT_EQ(model.engram_vocabulary()[500], 2);
}

TEST(Model, NumbersDraftStagesAfterTheBackboneAndGivesThemNoCompressedKv) {
  const Model model = tiny(vocabulary(512, 439));
  ASSERT_EQ(model.draft_layers().size(), 3U);
  EXPECT_EQ(model.draft_layers()[0].plan.id, model.config().layers);
  EXPECT_EQ(model.draft_layers()[0].plan.ratio, 0);
  EXPECT_EQ(model.draft_layers()[0].plan.engram, -1);
  EXPECT_EQ(model.lookback(), model.config().engram.max_ngram_size - 1);
  EXPECT_EQ(model.border(), 6);
}

}  // namespace
}  // namespace thalweg::model
