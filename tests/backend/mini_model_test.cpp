// The bundled checkpoint against its own golden answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "backend/golden.hpp"
#include "backend/recorder.hpp"
#include "backend/steps.hpp"
#include "base/json.hpp"
#include "base/mapped_file.hpp"

namespace thalweg::backend {
namespace {

using testing::argmax;
using testing::Recorder;

// Whether a row had equal scores on both sides of the selection's cut. Trained indexers give many entries
// exactly 0; which of them are taken is not specified, and another choice moves logits a little.
bool selection_tied(const Recorder& recorder, const model::Model& model) {
  const auto topk = static_cast<std::size_t>(model.config().index_topk);
  for (const model::Layer& layer : model.layers()) {
    if (!layer.plan.is_index_source()) continue;
    char name[32];
    std::snprintf(name, sizeof name, "L%02d.index_scores", layer.plan.id);
    for (std::vector<float> scores : recorder.floats(name)) {
      if (scores.size() <= topk) continue;
      std::sort(scores.begin(), scores.end(), std::greater<>());
      if (std::isfinite(scores[topk]) && scores[topk - 1] == scores[topk]) return true;
    }
  }
  return false;
}

// One step computes the prompt and the whole answer; every position must choose the answer's next token.
TEST(MiniModel, AnswersItsTwentyPromptsAsTheFloat32Reference) {
  const auto folder = testing::source_directory() / "models/mini";
  const Json golden = parse_json(read_text_file(folder / "golden.json"), "golden.json");
  const model::Model& model = testing::load_model(folder);
  const auto backend = testing::make_backend(model, model::Precision::float32, 8);
  Recorder recorder(model.config().layers);
  backend->observe(&recorder);
  std::size_t compared = 0;
  for (const Json& prompt : golden["prompts"]) {
    if (testing::kSanitized && prompt["prompt_ids"].size() > 50) continue;
    auto tokens = prompt["prompt_ids"].get<std::vector<std::int32_t>>();
    const auto outputs = prompt["output_ids"].get<std::vector<std::int32_t>>();
    const std::size_t first = tokens.size() - 1;
    tokens.insert(tokens.end(), outputs.begin(), outputs.end() - 1);
    auto sequence = testing::make_sequence(tokens);
    recorder.clear();
    const auto logits = testing::advance(*backend, sequence);
    const double tolerance = selection_tied(recorder, model) ? 3e-3 : 3e-4;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string what = prompt["name"].get<std::string>() + " token " + std::to_string(i);
      const auto& row = logits[first + i];
      for (int k = 0; k < 2; ++k) {
        const auto id = prompt["top2_ids"][i][k].get<std::int32_t>();
        ASSERT_NEAR(row[id], prompt["top2_logits"][i][k].get<float>(), tolerance) << what;
      }
      if (prompt["margin"][i].get<float>() < 1e-3F) break;  // a near-tie says nothing
      ASSERT_EQ(argmax(row), outputs[i]) << what;
      ++compared;
    }
  }
  EXPECT_GT(compared, testing::kSanitized ? 100U : 300U);
}

}  // namespace
}  // namespace thalweg::backend
