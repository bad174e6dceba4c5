// `thalweg inspect greedy`: greedy continuations of token prompts, through the engine.
#include <cstdio>
#include <memory>

#include "app/commands.hpp"
#include "app/engine_options.hpp"
#include "app/generation.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "engine/engine.hpp"

namespace thalweg::app {
namespace {

struct Options {
  EngineOptions engine;
  engine::EngineOptions serving;
  std::string tokens;
  std::int64_t max_tokens = 64;
  bool ignore_eos = false;
};

struct Continuation {
  Json tokens = Json::array();
  Json margins = Json::array();
  Json accepted = Json::array();  // drafts accepted in every step
  std::int32_t drafts = 0;        // of the step whose tokens are arriving
  std::string error;
};

void take(Continuation& continuation, const engine::Event& event) {
  if (!event.error.empty()) continuation.error = event.error;
  if (!event.token) return;
  continuation.tokens.push_back(*event.token);
  // The two best tokens' log-probabilities differ by what their logits differ by.
  const auto& top = event.logprobs->raw.top;
  continuation.margins.push_back(top[0].logprob - top[1].logprob);
  if (event.accepted_draft) {
    ++continuation.drafts;
    if (!event.finish) return;
  }
  continuation.accepted.push_back(continuation.drafts);
  continuation.drafts = 0;
}

void run(const Options& options) {
  const auto model = load(options.engine);
  const auto prompts = read_prompts(options.tokens, model->model.config());
  engine::EngineOptions serving = options.serving;
  serving.device = backend::parse_device(options.engine.backend);
  serving.precision = model::parse_precision(options.engine.precision);
  serving.threads = options.engine.threads;
  engine::Engine engine(*model, serving);
  std::vector<Continuation> continuations(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    engine::Request request;
    request.prompt = prompts[i];
    request.sampling.temperature = 0;
    request.sampling.max_tokens = options.max_tokens;
    request.sampling.ignore_eos = options.ignore_eos;
    request.sampling.logprobs = 2;
    engine.submit(std::move(request),
                  [&continuations, i](const engine::Event& event) { take(continuations[i], event); });
  }
  engine.drain();
  Json result = {{"outputs", Json::array()}, {"margins", Json::array()}, {"accepted", Json::array()}};
  for (const Continuation& continuation : continuations) {
    if (!continuation.error.empty()) throw WorkError(continuation.error);
    result["outputs"].push_back(continuation.tokens);
    result["margins"].push_back(continuation.margins);
    result["accepted"].push_back(continuation.accepted);
  }
  std::printf("%s\n", to_text(result).c_str());
}

}  // namespace

void add_inspect_greedy(CLI::App& inspect) {
  auto options = std::make_shared<Options>();
  CLI::App* command = inspect.add_subcommand(
      "greedy",
      "Greedy continuations of token prompts: outputs, margins (best two logits), drafts accepted a step");
  add_engine_options(*command, options->engine);
  add_serving_options(*command, options->serving);
  command->add_option("--tokens", options->tokens, "File {\"prompts\": [[ids...], ...]}")->required();
  command->add_option("--max-tokens", options->max_tokens, "Tokens to generate at most")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32))
      ->capture_default_str();
  command->add_flag("--ignore-eos", options->ignore_eos, "Go on after the end-of-sequence token");
  command->add_flag("--json")->description("Changes nothing: the output is always JSON");
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
