// `thalweg inspect draft`: the DSpark draft model on token prompts.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/capture.hpp"
#include "app/commands.hpp"
#include "app/engine_options.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "engine/timeline.hpp"

namespace thalweg::app {
namespace {

struct Options {
  EngineOptions engine;
  std::string tokens;
  std::string out;
  std::size_t chunk = 0;
  bool json = false;
};

std::int32_t argmax(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

float margin(std::span<const float> logits, std::int32_t best) {
  float second = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (static_cast<std::int32_t>(i) != best) second = std::max(second, logits[i]);
  }
  return logits[best] - second;
}

// The drafts after one prompt: greedy tokens with margins, and confidences.
Json draft_prompt(const Options& options, engine::Timeline& timeline,
                  const std::vector<std::int32_t>& prompt) {
  std::int32_t anchor = 0;
  timeline.clear();
  timeline.append(prompt, options.chunk > 0 ? options.chunk : prompt.size(), false,
                  [&](std::int64_t, std::span<const float> logits) { anchor = argmax(logits); });
  Json margins = Json::array();
  const backend::DraftResult result =
      timeline.draft(anchor, [&](std::int32_t, int, std::span<const float> logits) {
        const std::int32_t token = argmax(logits);
        margins.push_back(margin(logits, token));
        return token;
      });
  Json confidences = Json::array();
  for (const float logit : result.confidence_logits) {
    confidences.push_back(1.0F / (1.0F + std::exp(-std::clamp(logit, -60.0F, 60.0F))));
  }
  return {{"anchor_id", anchor},
          {"tokens", std::vector<std::int32_t>(result.tokens.begin(), result.tokens.end())},
          {"margins", margins},
          {"confidence_logit",
           std::vector<float>(result.confidence_logits.begin(), result.confidence_logits.end())},
          {"confidence", confidences}};
}

void run(const Options& options) {
  const auto model = load(options.engine);
  const auto& config = model->model.config();
  if (config.draft.layers == 0) {
    throw InputError((model->directory / "config.json").string() + ": text_config.num_nextn_predict_layers",
                     "a draft model", "0");
  }
  const auto prompts = read_prompts(options.tokens, config);
  if (!options.out.empty() && prompts.size() != 1) {
    throw InputError(options.tokens, "one prompt with --out", std::to_string(prompts.size()));
  }
  std::int64_t longest = 1;
  for (const auto& prompt : prompts)
    longest = std::max<std::int64_t>(longest, static_cast<std::int64_t>(prompt.size()));
  const auto backend = make_single_backend(options.engine, *model, longest + config.draft.block_size);
  engine::Timeline timeline(*backend);
  Capture capture(config.layers);
  if (!options.out.empty()) backend->observe(&capture);
  Json drafts = Json::array();
  for (const auto& prompt : prompts) drafts.push_back(draft_prompt(options, timeline, prompt));
  if (!options.out.empty()) {
    std::vector<checkpoint::StoredTensor> tensors;
    for (checkpoint::StoredTensor& tensor : capture.tensors()) {
      if (tensor.name.starts_with("draft.") || tensor.name.starts_with("D"))
        tensors.push_back(std::move(tensor));
    }
    checkpoint::write_safetensors(options.out, tensors, {{"precision", options.engine.precision}});
  }
  std::printf("%s\n", to_text({{"drafts", drafts}}).c_str());
}

}  // namespace

void add_inspect_draft(CLI::App& inspect) {
  auto options = std::make_shared<Options>();
  CLI::App* command = inspect.add_subcommand("draft", "DSpark drafts after token prompts, with confidences");
  add_engine_options(*command, options->engine);
  command->add_option("--tokens", options->tokens, "File {\"prompts\": [[ids...], ...]}")->required();
  command->add_option("--out", options->out, "safetensors file for the tensors draft.* (one prompt only)");
  command
      ->add_option("--chunk", options->chunk, "Feed prompts in chunks of this many tokens (default: whole)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 31));
  command->add_flag("--json", options->json, "JSON output (always)");
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
