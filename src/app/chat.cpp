// `thalweg chat`: a conversation in the terminal, streamed, with reasoning shown apart.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>

#include "app/commands.hpp"
#include "app/generation.hpp"
#include "base/error.hpp"

namespace thalweg::app {
namespace {

struct Options {
  EngineOptions engine;
  engine::EngineOptions serving;
  SamplingOptions sampling;
  std::string system;
  bool thinking = true;
  std::optional<int> effort;
};

std::atomic<bool> interrupted{false};

void on_interrupt(int) {
  interrupted.store(true);
}

// Writes an answer as it comes: reasoning dimmed on a terminal, or between marks.
class Screen {
 public:
  explicit Screen(bool colour) : colour_(colour) {}
  void show(const text::ParseEvent& piece) {
    const bool reasoning = piece.kind == text::ParseEvent::Kind::reasoning;
    if (!reasoning && piece.kind != text::ParseEvent::Kind::content) return;
    if (reasoning != in_reasoning_) {
      in_reasoning_ = reasoning;
      std::fputs(reasoning ? (colour_ ? "\033[2m" : "[reasoning] ") : (colour_ ? "\033[0m\n" : "\n[answer] "),
                 stdout);
    }
    std::fputs(piece.text.c_str(), stdout);
    std::fflush(stdout);
  }
  void end() {
    if (in_reasoning_ && colour_) std::fputs("\033[0m", stdout);
    in_reasoning_ = false;
    std::fputs("\n", stdout);
    std::fflush(stdout);
  }

 private:
  bool colour_;
  bool in_reasoning_ = false;
};

// One turn: sends the messages so far and returns the assistant's message to be added to them.
Json take_turn(const Options& options, const engine::LoadedModel& model, engine::Engine& engine,
               const Json& messages, Screen& screen) {
  Json body = user_body("", "", options.thinking, options.effort);
  body["messages"] = messages;
  engine::Request request = chat_request(model, body, "conversation", options.sampling);
  text::MessageAccumulator message;
  std::string error;
  std::atomic<bool> done{false};
  const engine::RequestId id = engine.submit(std::move(request), [&](const engine::Event& event) {
    for (const text::ParseEvent& piece : event.parsed) {
      message.add(piece);
      screen.show(piece);
    }
    if (!event.finish) return;
    error = event.error;
    done.store(true);
  });
  while (!done.load()) {
    if (interrupted.exchange(false)) engine.cancel(id);
    usleep(2000);
  }
  engine.drain();
  screen.end();
  if (!error.empty()) throw WorkError(error);
  const text::ParsedMessage answer = message.finish(text::BackendFinish::stop);
  Json result = {{"role", "assistant"}, {"content", answer.content}};
  if (answer.reasoning) result["reasoning_content"] = *answer.reasoning;
  return result;
}

void run(const Options& options) {
  check_sampling_options(options.sampling);
  const auto model = load(options.engine);
  engine::EngineOptions serving = options.serving;
  serving.device = backend::parse_device(options.engine.backend);
  serving.precision = model::parse_precision(options.engine.precision);
  serving.threads = options.engine.threads;
  engine::Engine engine(*model, serving);
  const bool terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  std::fprintf(stderr, "thalweg: %s\n", engine.describe().c_str());
  if (terminal)
    std::fprintf(stderr, "Type a message; an empty line or Ctrl-D ends. Ctrl-C stops an answer.\n");
  std::signal(SIGINT, on_interrupt);
  Screen screen(terminal);
  Json messages = Json::array();
  if (!options.system.empty()) messages.push_back({{"role", "system"}, {"content", options.system}});
  std::string line;
  while (true) {
    if (terminal) std::fputs("> ", stdout);
    std::fflush(stdout);
    if (!std::getline(std::cin, line) || line.empty()) break;
    messages.push_back({{"role", "user"}, {"content", line}});
    messages.push_back(take_turn(options, *model, engine, messages, screen));
  }
}

}  // namespace

void add_chat(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("chat", "Talk to the model; every line of standard input is a message");
  command->add_option("--system", options->system, "System message")->type_name("TEXT");
  command->add_flag("--think,!--no-think", options->thinking, "Reasoning before answers (default: on)");
  command->add_option("--effort", options->effort, "Reasoning effort")->check(CLI::Range(1, 100));
  options->sampling.max_tokens = 1024;
  add_sampling_options(*command, options->sampling);
  add_engine_options(*command, options->engine);
  add_serving_options(*command, options->serving);
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
