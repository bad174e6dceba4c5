// `thalweg serve`: the HTTP service.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>

#include "app/commands.hpp"
#include "app/generation.hpp"
#include "base/error.hpp"
#include "serve/http_server.hpp"

namespace thalweg::app {
namespace {

struct Options {
  EngineOptions engine;
  engine::EngineOptions serving;
  serve::HttpServerOptions http;
  std::string api_key_file;
  std::vector<std::string> model_names;
  std::uint64_t max_waiting = 1024;
  std::uint64_t max_unread = std::uint64_t{4} << 20;
  std::string cors_origin;
  std::string request_log;
  serve::ResponseLimits responses;
  double drain_seconds = 30;
};

void tell(const std::string& line) {
  std::fprintf(stderr, "thalweg: %s\n", line.c_str());
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

// Waits for SIGTERM and SIGINT, which all threads have blocked. The first asks for a drain, or ends the
// program while it still loads; the second ends it at once.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::thread([this] { wait(); }).detach();
  }

  /// From now on there is something to finish.
  void loaded() { loading_.store(false); }
  /// Returns with the first signal.
  void wait_for_first() { first_.get_future().wait(); }

 private:
  void wait() {
    int signal = 0;
    sigwait(&set_, &signal);
    if (loading_.load()) std::_Exit(0);
    first_.set_value();
    sigwait(&set_, &signal);
    std::_Exit(128 + signal);
  }

  sigset_t set_{};
  std::atomic<bool> loading_{true};
  std::promise<void> first_;
};

serve::ServiceOptions service_options(const Options& options) {
  serve::ServiceOptions service;
  service.policy.max_choices = engine::SamplingLimits::max_choices;
  for (const std::string& name : options.model_names) service.policy.model_names.push_back(name);
  if (!options.api_key_file.empty()) service.keys = serve::ApiKeys::read(options.api_key_file);
  service.max_waiting = options.max_waiting;
  service.max_unread = options.max_unread;
  service.cors_origin = options.cors_origin;
  service.request_log = options.request_log;
  service.responses = options.responses;
  service.version = "0.1.0";
  return service;
}

void run(const Options& options) {
  // Lives as long as the program: its thread waits for signals to the end.
  static Signals& signals = *new Signals;
  serve::Service service(service_options(options));
  std::unique_ptr<engine::LoadedModel> model;
  std::unique_ptr<engine::Engine> engine;
  std::unique_ptr<serve::EngineBackend> backend;
  serve::HttpServer server(service, options.http);
  tell(fmt::format("listening on http://{}:{}", options.http.host, server.port()));
  model = load(options.engine, [&](std::int64_t done, std::int64_t total) {
    service.loading("reading weights", done, total);
  });
  service.loading("starting the engine", 0, 0);
  engine::EngineOptions serving = options.serving;
  serving.device = backend::parse_device(options.engine.backend);
  serving.precision = model::parse_precision(options.engine.precision);
  serving.threads = options.engine.threads;
  engine = std::make_unique<engine::Engine>(*model, serving);
  backend = std::make_unique<serve::EngineBackend>(*model, *engine);
  service.open(*backend, {model->directory.filename().string(), model->digest(), engine->describe()});
  signals.loaded();
  tell(engine->describe());
  tell("ready");
  signals.wait_for_first();
  tell(fmt::format("shutting down; answers under way have {} s to finish", options.drain_seconds));
  const bool all = server.drain(milliseconds(options.drain_seconds));
  tell(all ? "all answers finished" : "answers that did not finish in time were cut");
}

void add_http_options(CLI::App& command, const std::shared_ptr<Options>& options) {
  serve::HttpServerOptions& http = options->http;
  command.add_option("--host", http.host, "Address to listen on; 0.0.0.0 is all of IPv4")
      ->capture_default_str();
  command.add_option("--port", http.port, "Port to listen on; 0: any free one")->capture_default_str();
  command.add_option("--api-key-file", options->api_key_file, "Keys that are let in, one a line")
      ->type_name("FILE");
  command
      .add_option("--model-name", options->model_names,
                  "A further model name to answer to; may be given several times")
      ->expected(1)
      ->take_all();
  command.add_option("--cors-origin", options->cors_origin, "Access-Control-Allow-Origin of every reply");
  command
      .add_option("--request-log", options->request_log, "Appends a JSON line for every request to this file")
      ->type_name("FILE");
  command.add_option("--max-body", http.max_body, "Bytes of a request body at most")->capture_default_str();
  command.add_option("--max-connections", http.max_connections,
                     "Open connections at most (0: as many as open files are allowed)");
  command.add_option("--max-waiting", options->max_waiting, "Requests waiting for the engine at most")
      ->capture_default_str();
  command.add_option("--max-unread", options->max_unread, "Bytes of an answer that may wait for its reader")
      ->capture_default_str();
  command
      .add_option("--stored-responses", options->responses.count,
                  "Answers of Responses kept in memory to be continued by id (0: none)")
      ->capture_default_str();
  command.add_option("--stored-response-bytes", options->responses.bytes, "Bytes they may take together")
      ->capture_default_str();
  command
      .add_option_function<double>(
          "--stored-response-seconds",
          [options](double seconds) { options->responses.age = milliseconds(seconds); },
          "How long each is kept")
      ->check(CLI::Range(0.001, 1e9))
      ->default_str("86400");
  command.add_option("--http-threads", http.threads, "Threads that serve connections")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command
      .add_option("--drain-seconds", options->drain_seconds,
                  "After SIGTERM, how long answers under way may take to finish")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  command
      .add_option_function<double>(
          "--keep-alive-seconds",
          [options](double seconds) { options->http.keep_alive = milliseconds(seconds); },
          "Time between signs of life while an answer is waited for")
      ->check(CLI::Range(0.01, 3600.0))
      ->default_str("10");
}

}  // namespace

void add_serve(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("serve", "The HTTP service: OpenAI and Anthropic APIs");
  add_http_options(*command, options);
  add_engine_options(*command, options->engine);
  add_serving_options(*command, options->serving);
  command->callback([options] { run(*options); });
}

}  // namespace thalweg::app
