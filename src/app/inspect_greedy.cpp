// `thalweg inspect greedy`: greedy continuations of token prompts with their margins.
#include <algorithm>
#include <cstdio>

#include "app/commands.hpp"
#include "app/engine_options.hpp"
#include "app/progress.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "engine/timeline.hpp"

namespace thalweg::app {
namespace {

struct Options {
  EngineOptions engine;
  std::string tokens;
  std::int64_t max_tokens = 64;
  std::size_t chunk = 512;
  bool ignore_eos = false;
  bool json = false;
};

struct Best {
  std::int32_t token;
  float margin;
};

// The largest logit, ties to the lower id, and its distance to the second largest.
Best best_of(std::span<const float> logits) {
  std::size_t first = 0;
  for (std::size_t i = 1; i < logits.size(); ++i) {
    if (logits[i] > logits[first]) first = i;
  }
  float second = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (i != first) second = std::max(second, logits[i]);
  }
  return {static_cast<std::int32_t>(first), logits[first] - second};
}

void run(const Options& options) {
  const auto model = load(options.engine);
  const auto& config = model->model.config();
  const auto prompts = read_prompts(options.tokens, config);
  std::int64_t longest = 0;
  for (const auto& prompt : prompts)
    longest = std::max<std::int64_t>(longest, static_cast<std::int64_t>(prompt.size()));
  const auto backend = make_single_backend(options.engine, *model, longest + options.max_tokens);
  engine::Timeline timeline(*backend);
  Json outputs = Json::array();
  Json margins = Json::array();
  Json accepted = Json::array();
  Progress progress("generating", "prompts", prompts.size());
  for (const auto& prompt : prompts) {
    Json tokens = Json::array();
    Json distances = Json::array();
    Best best{};
    const auto take = [&](std::int64_t, std::span<const float> logits) { best = best_of(logits); };
    timeline.clear();
    timeline.append(prompt, options.chunk, false, take);
    while (true) {
      tokens.push_back(best.token);
      distances.push_back(best.margin);
      const bool ended = best.token == config.eos_token_id && !options.ignore_eos;
      if (ended || static_cast<std::int64_t>(tokens.size()) >= options.max_tokens) break;
      if (timeline.length() >= config.max_position_embeddings) break;
      timeline.append({&best.token, 1}, 1, false, take);
    }
    outputs.push_back(tokens);
    margins.push_back(distances);
    accepted.push_back(Json::array());  // nothing is drafted: one token a step
    progress.advance();
  }
  progress.finish();
  std::printf("%s\n", to_text({{"outputs", outputs}, {"margins", margins}, {"accepted", accepted}}).c_str());
}

}  // namespace

void add_inspect_greedy(CLI::App& inspect) {
  auto options = std::make_shared<Options>();
  CLI::App* command = inspect.add_subcommand("greedy", "Greedy continuations of token prompts, with margins");
  add_engine_options(*command, options->engine);
  command->add_option("--tokens", options->tokens, "File {\"prompts\": [[ids...], ...]}")->required();
  command->add_option("--max-tokens", options->max_tokens, "Tokens to generate at most")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32))
      ->capture_default_str();
  command->add_option("--chunk", options->chunk, "Feed prompts in chunks of this many tokens")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 31))
      ->capture_default_str();
  command->add_flag("--ignore-eos", options->ignore_eos, "Go on after the end-of-sequence token");
  command->add_flag("--json", options->json, "JSON output (always)");
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
