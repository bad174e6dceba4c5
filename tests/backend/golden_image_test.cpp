// Prompts with an image, from the embeddings that the reference's vision tower gave: routing bias, Engram
// blocking and everything below.
#include <gtest/gtest.h>

#include "backend/golden_trace.hpp"
#include "backend/steps.hpp"

namespace thalweg::backend {
namespace {

using model::Precision;
using testing::advance;
using testing::distance;
using testing::find_data;
using testing::GoldenFile;
using testing::load_model;
using testing::make_backend;
using testing::Recorder;

class GoldenImage : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    THALWEG_REQUIRE_DATA(GetParam());
    folder_ = *find_data(GetParam());
    prompt_ = std::make_unique<GoldenFile>(folder_ / "prompts/image.safetensors");
    trace_ = std::make_unique<GoldenFile>(folder_ / "trace_image.safetensors");
    model_ = &load_model(folder_ / "model");
    sequence_ = testing::make_sequence(prompt_->ids("input_ids"));
    for (const std::int64_t kind : prompt_->integers("vision_token_types"))
      sequence_.image.push_back(kind >= 0 ? 1 : 0);
  }

  // The embedding of every token on every stream.
  std::vector<float> streams() const {
    const auto embeddings = trace_->floats("embeddings");
    const auto width = static_cast<std::size_t>(model_->config().hidden_size);
    std::vector<float> result;
    for (std::size_t row = 0; row < embeddings.size() / width; ++row) {
      const auto first = embeddings.begin() + static_cast<std::ptrdiff_t>(row * width);
      for (int s = 0; s < model_->config().hc_mult; ++s) {
        result.insert(result.end(), first, first + static_cast<std::ptrdiff_t>(width));
      }
    }
    return result;
  }

  void expect_logits(const char* name, Precision precision, double tolerance) {
    const auto backend = make_backend(*model_, precision, sequence_.pages.size());
    Recorder recorder(model_->config().layers);
    recorder.replace("L00.in_streams", streams());
    backend->observe(&recorder);
    const auto logits = advance(*backend, sequence_, 20);
    const auto expected = prompt_->floats(name);
    const std::size_t vocab = logits[0].size();
    for (std::size_t i = 0; i < logits.size(); ++i) {
      ASSERT_LE(distance(logits[i], {expected.data() + i * vocab, vocab}), tolerance) << "position " << i;
    }
  }

  std::filesystem::path folder_;
  std::unique_ptr<GoldenFile> prompt_;
  std::unique_ptr<GoldenFile> trace_;
  const model::Model* model_ = nullptr;
  testing::Sequence sequence_;
};

TEST_P(GoldenImage, RoutesAndHashesEveryTokenAsTheReference) {
  const auto backend = make_backend(*model_, Precision::float32, sequence_.pages.size());
  Recorder recorder(model_->config().layers);
  recorder.replace("L00.in_streams", streams());
  backend->observe(&recorder);
  advance(*backend, sequence_, 20);
  testing::expect_tensors(*trace_, recorder, sequence_.tokens.size(), 3e-4, [](const std::string& name) {
    return name.ends_with("gate_ids") || name.ends_with("gate_weights") || name.ends_with("engram_hash");
  });
}

TEST_P(GoldenImage, LogitsEqualTheFloat32Reference) {
  expect_logits("logits", Precision::float32, 3e-4);
}

TEST_P(GoldenImage, LogitsEqualTheReferenceWithRoundedCaches) {
  expect_logits("logits_cacheq", Precision::cache, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Data, GoldenImage, ::testing::Values("tiny_whole", "wide"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace thalweg::backend
