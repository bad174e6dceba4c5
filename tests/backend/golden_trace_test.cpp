// Every intermediate of every layer against the golden traces.
#include "backend/golden_trace.hpp"

#include <gtest/gtest.h>

#include "backend/steps.hpp"

namespace thalweg::backend {
namespace {

using model::Precision;
using testing::advance;
using testing::find_data;
using testing::GoldenFile;
using testing::load_model;
using testing::make_backend;
using testing::make_sequence;
using testing::Recorder;

class GoldenTrace : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    THALWEG_REQUIRE_DATA(GetParam());
    if (testing::kSanitized && GetParam() == "realheads") GTEST_SKIP() << "left out with sanitizers";
    folder_ = *find_data(GetParam());
  }
  std::filesystem::path folder_;
};

bool is_layer(const std::string& name) {
  return name[0] == 'L';
}

TEST_P(GoldenTrace, EveryTensorOfEveryLayerEqualsTheFloat32Reference) {
  const GoldenFile file(folder_ / "trace.safetensors");
  const model::Model& model = load_model(folder_ / "model");
  auto sequence = make_sequence(file.ids("input_ids"));
  const auto backend = make_backend(model, Precision::float32, sequence.pages.size());
  Recorder recorder(model.config().layers);
  backend->observe(&recorder);
  advance(*backend, sequence);
  // With Engram in layer 0 the file has the streams after it under this name, too.
  const bool engram_first = file.has("L00.engram_streams");
  testing::expect_tensors(file, recorder, sequence.tokens.size(), 3e-4, [&](const std::string& name) {
    if (engram_first && name == "L00.in_streams") return false;
    return is_layer(name) || name.starts_with("final_") || name == "logits";
  });
}

TEST_P(GoldenTrace, TheDraftsStagesEqualTheFloat32Reference) {
  const GoldenFile file(folder_ / "trace.safetensors");
  const model::Model& model = load_model(folder_ / "model");
  auto sequence = make_sequence(file.ids("input_ids"));
  const auto backend = make_backend(model, Precision::float32, sequence.pages.size() + 1);
  Recorder recorder(model.config().layers);
  backend->observe(&recorder);
  const auto logits = advance(*backend, sequence);
  ASSERT_EQ(testing::argmax(logits.back()), file.ids("draft.anchor_id")[0]);
  const auto drafts = testing::draft(*backend, {{&sequence, file.ids("draft.anchor_id")[0]}})[0];
  EXPECT_EQ(drafts.tokens, file.ids("draft.tokens"));
  EXPECT_LE(testing::distance(drafts.confidence, file.floats("draft.confidence_logit")), 3e-4);
  testing::expect_tensors(file, recorder, sequence.tokens.size(), 3e-4, [](const std::string& name) {
    return name.starts_with("draft.") && name != "draft.tokens" && name != "draft.anchor_id" &&
           name != "draft.confidence_logit" && name != "draft.features_first_position";
  });
}

INSTANTIATE_TEST_SUITE_P(Data, GoldenTrace, ::testing::ValuesIn(testing::kDataSets),
                         [](const auto& test) { return test.param; });

// With rounded caches the layers are compared one by one, each fed the reference's own input: after a first
// rounding that fell the other way, everything below would differ.
class GoldenCacheTrace : public GoldenTrace {};

TEST_P(GoldenCacheTrace, EachLayerFedItsGoldenInputEqualsTheReferenceWithRoundedCaches) {
  const GoldenFile file(folder_ / "trace_cacheq.safetensors");
  const model::Model& model = load_model(folder_ / "model");
  std::vector<std::int32_t> tokens(file.rows("L00.attn_in"), 1);
  auto sequence = make_sequence(tokens);
  const auto backend = make_backend(model, Precision::cache, sequence.pages.size());
  Recorder recorder(model.config().layers);
  for (int layer = 0; layer < model.config().layers; ++layer) {
    char name[24];
    std::snprintf(name, sizeof name, "L%02d.attn_in", layer);
    recorder.replace(name, file.floats(name));
  }
  backend->observe(&recorder);
  advance(*backend, sequence);
  testing::expect_tensors(file, recorder, sequence.tokens.size(), 3e-4, is_layer, 1);
}

INSTANTIATE_TEST_SUITE_P(Data, GoldenCacheTrace, ::testing::Values("tiny", "tiny_whole", "wide"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace thalweg::backend
