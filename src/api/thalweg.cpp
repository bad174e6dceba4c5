// The C++ interface: the engine room behind plain types.
#include "thalweg/thalweg.hpp"

#include <utility>

#include "base/error.hpp"
#include "engine/engine.hpp"
#include "text/detokenizer.hpp"

namespace thalweg {
namespace {

Failure::Kind kind_of(const Error& error) {
  switch (error.fault()) {
    case Fault::usage:
      return Failure::Kind::options;
    case Fault::input:
      return Failure::Kind::input;
    case Fault::work:
      break;
  }
  return Failure::Kind::work;
}

// Whatever goes wrong inside leaves as a Failure.
template <class Call>
auto guarded(const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    throw Failure(kind_of(error), error.what());
  } catch (const std::exception& error) {
    throw Failure(Failure::Kind::work, error.what());
  }
}

engine::EngineOptions engine_options(const Options& options) {
  engine::EngineOptions result;
  result.threads = options.threads;
  result.mode = options.replay ? cache::ReuseMode::replay : cache::ReuseMode::exact;
  result.speculation = engine::parse_speculation(options.speculate);
  result.sequences = options.sequences;
  result.batch_tokens = options.batch_tokens;
  result.context = options.context;
  result.cache_tokens = options.cache_tokens;
  result.host_cache_bytes = options.host_cache_bytes;
  result.disk_cache = options.disk_cache;
  return result;
}

std::optional<grammar::Constraint> constraint_of(const Request& request) {
  using Kind = grammar::Constraint::Kind;
  std::vector<grammar::Constraint> given;
  if (!request.json_schema.empty()) given.push_back({.kind = Kind::json_schema, .text = request.json_schema});
  if (request.json_object) given.push_back({.kind = Kind::json_object});
  if (!request.regex.empty()) given.push_back({.kind = Kind::regex, .text = request.regex});
  if (!request.grammar.empty()) given.push_back({.kind = Kind::ebnf, .text = request.grammar});
  if (!request.choices.empty()) given.push_back({.kind = Kind::choice, .choices = request.choices});
  if (given.size() > 1)
    throw InputError("request", "one of json_schema, json_object, regex, grammar and choices", "several");
  if (given.empty()) return std::nullopt;
  return std::move(given.front());
}

engine::Request engine_request(const Request& request, const engine::LoadedModel& model) {
  engine::Request result;
  if (!request.tokens.empty()) {
    if (!request.prompt.empty()) throw InputError("request", "either prompt or tokens", "both");
    result.prompt = request.tokens;
  } else {
    const std::int32_t begin = model.model.config().bos_token_id;
    result.prompt = model.tokenizer.encode(request.prompt);
    if (result.prompt.empty() || result.prompt.front() != begin)
      result.prompt.insert(result.prompt.begin(), begin);
  }
  engine::SamplingParams& sampling = result.sampling;
  sampling.max_tokens = request.max_tokens;
  sampling.temperature = request.temperature;
  sampling.top_p = request.top_p;
  sampling.top_k = request.top_k;
  sampling.seed = request.seed;
  sampling.stop_strings = request.stop;
  sampling.ignore_eos = request.ignore_eos;
  sampling.n = request.n;
  result.constraint = constraint_of(request);
  result.priority = request.priority;
  result.cache_salt = request.cache_salt;
  return result;
}

Finish finish_of(engine::Finish finish) {
  switch (finish) {
    case engine::Finish::stop:
      return Finish::stop;
    case engine::Finish::length:
      return Finish::length;
    case engine::Finish::refused:
    case engine::Finish::failed:
      return Finish::failed;
    case engine::Finish::aborted:
    case engine::Finish::deadline:
      break;
  }
  return Finish::aborted;
}

Event event_of(const engine::Event& event) {
  Event result;
  result.request = event.request;
  result.choice = event.choice;
  result.token = event.token;
  result.text = event.text;
  if (event.finish) result.finish = finish_of(*event.finish);
  result.error = event.error;
  result.prompt_tokens = event.usage.prompt_tokens;
  result.reused_tokens = event.usage.reused_tokens;
  result.output_tokens = event.usage.output_tokens;
  return result;
}

}  // namespace

struct Engine::State {
  explicit State(const Options& options)
      : model(engine::load_model(options.model)), engine(*model, engine_options(options)) {}
  std::unique_ptr<engine::LoadedModel> model;
  engine::Engine engine;
};

Engine::Engine(const Options& options) : state_(guarded([&] { return std::make_unique<State>(options); })) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

std::uint64_t Engine::submit(const Request& request, EventSink sink) {
  return guarded([&] {
    return state_->engine.submit(
        engine_request(request, *state_->model),
        [sink = std::move(sink)](const engine::Event& event) { sink(event_of(event)); });
  });
}

void Engine::cancel(std::uint64_t request) {
  state_->engine.cancel(request);
}
void Engine::drain() {
  state_->engine.drain();
}

Statistics Engine::statistics() const {
  const engine::EngineStatistics s = state_->engine.statistics();
  return {.admitted = s.admitted,
          .waiting = s.waiting,
          .running = s.running,
          .finished = s.finished,
          .aborted = s.aborted,
          .prompt_tokens = s.prompt_tokens,
          .reused_tokens = s.reused_tokens,
          .output_tokens = s.output_tokens,
          .steps = s.steps,
          .device_seconds = s.device_seconds};
}

std::string Engine::describe() const {
  return state_->engine.describe();
}
std::int64_t Engine::context() const {
  return state_->engine.context();
}

std::vector<std::int32_t> Engine::tokenize(const std::string& text) const {
  return guarded([&] { return state_->model->tokenizer.encode(text); });
}

std::string Engine::detokenize(const std::vector<std::int32_t>& tokens) const {
  return guarded([&] { return state_->model->tokenizer.decode(tokens); });
}

const char* version() {
  return "0.1.0";
}

}  // namespace thalweg
