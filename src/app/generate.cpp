// `thalweg generate`: text in, text out; one prompt, a conversation or a batch.
#include <fmt/format.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "app/batch.hpp"
#include "app/commands.hpp"
#include "app/generation.hpp"
#include "base/error.hpp"
#include "base/mapped_file.hpp"

namespace thalweg::app {
namespace {

struct Options {
  EngineOptions engine;
  engine::EngineOptions serving;
  SamplingOptions sampling;
  std::optional<std::string> prompt;
  std::optional<std::string> user;
  std::string system;
  std::string chat;
  std::string batch;
  std::string out;
  bool thinking = true;
  std::optional<int> effort;
  bool stream = false;
  bool json = false;
};

void write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw WorkError("standard output: write failed");
  }
}

engine::Request make_request(const Options& options, const engine::LoadedModel& model) {
  if (options.prompt) return raw_request(model, *options.prompt, options.sampling);
  if (options.user) {
    const Json body = user_body(options.system, *options.user, options.thinking, options.effort);
    return chat_request(model, body, "--user", options.sampling);
  }
  return chat_request(model, parse_json(read_text_file(options.chat), options.chat, {.unique_keys = true}),
                      options.chat, options.sampling);
}

// Shows pieces of the first answer as they come; reasoning goes to stderr, apart from the answer.
void show(const engine::Event& event) {
  if (event.choice != 0) return;
  write(event.text);
  for (const text::ParseEvent& piece : event.parsed) {
    if (piece.kind == text::ParseEvent::Kind::content) write(piece.text);
    if (piece.kind == text::ParseEvent::Kind::reasoning) std::fputs(piece.text.c_str(), stderr);
  }
}

void run_one(const Options& options, const engine::LoadedModel& model, engine::Engine& engine) {
  engine::Request request = make_request(options, model);
  Answers answers(request);
  const bool live = options.stream && !options.json;
  std::exception_ptr failure;
  engine.submit(std::move(request), [&](const engine::Event& event) {
    answers.add(event);
    try {
      if (live && !failure) show(event);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  engine.drain();
  if (failure) std::rethrow_exception(failure);
  if (!answers.refusal().empty()) throw Error(Fault::input, answers.refusal());
  if (!answers.error().empty()) throw WorkError(answers.error());
  if (options.json) {
    write(to_text(answers.json()) + "\n");
  } else {
    write(live ? "\n" : answers.text() + "\n");
  }
}

void run(const Options& options) {
  const int inputs = int{options.prompt.has_value()} + int{options.user.has_value()} +
                     int{!options.chat.empty()} + int{!options.batch.empty()};
  if (inputs != 1) throw UsageError("exactly one of --prompt, --user, --chat and --batch must be given");
  if (options.batch.empty() && !options.out.empty()) throw UsageError("--out: only with --batch");
  if (!options.batch.empty() && options.stream) throw UsageError("--stream: not with --batch");
  if (options.sampling.logprobs && !options.json && options.batch.empty()) {
    throw UsageError("--logprobs: only with --json or --batch");
  }
  check_sampling_options(options.sampling);
  const auto model = load(options.engine);
  engine::EngineOptions serving = options.serving;
  serving.device = backend::parse_device(options.engine.backend);
  serving.precision = model::parse_precision(options.engine.precision);
  serving.threads = options.engine.threads;
  engine::Engine engine(*model, serving);
  std::fprintf(stderr, "thalweg: %s\n", engine.describe().c_str());
  if (options.batch.empty()) {
    run_one(options, *model, engine);
  } else {
    run_batch({options.batch, options.out}, options.sampling, *model, engine);
  }
}

}  // namespace

void add_generate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("generate", "Generate text from a prompt, a conversation or a batch file");
  command->add_option("--prompt", options->prompt, "Raw text to continue")->type_name("TEXT");
  command->add_option("--user", options->user, "A user's message, in chat format")->type_name("TEXT");
  command->add_option("--system", options->system, "System message for --user")->type_name("TEXT");
  command->add_option("--chat", options->chat, "A Chat Completions request (JSON)")->type_name("FILE");
  command
      ->add_option("--batch", options->batch,
                   "JSON lines: {\"prompt\": ...} or {\"messages\": [...]} with sampling members")
      ->type_name("FILE");
  command
      ->add_option("--out", options->out,
                   "Results of --batch, one line a request, in order; resumed if it exists")
      ->type_name("FILE");
  command->add_flag("--think,!--no-think", options->thinking,
                    "Reasoning before the answer of --user (default: on)");
  command->add_option("--effort", options->effort, "Reasoning effort of --user")->check(CLI::Range(1, 100));
  command->add_flag("--stream", options->stream, "Write text as it comes");
  command->add_flag("--json", options->json, "Print the whole result as JSON");
  add_sampling_options(*command, options->sampling);
  add_constraint_options(*command, options->sampling);
  add_engine_options(*command, options->engine);
  add_serving_options(*command, options->serving);
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
