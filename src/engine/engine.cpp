#include "engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include "base/error.hpp"
#include "engine/speculation/step_curve_file.hpp"

namespace thalweg::engine {
namespace {

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

std::string_view to_text(Finish finish) {
  switch (finish) {
    case Finish::stop:
      return "stop";
    case Finish::length:
      return "length";
    case Finish::aborted:
      return "aborted";
    case Finish::deadline:
      return "deadline";
    case Finish::refused:
      return "refused";
    case Finish::failed:
      return "failed";
  }
  return "";
}

Engine::Engine(const LoadedModel& model, const EngineOptions& options, const BackendWrapper& wrap)
    : model_(model), options_(options), sizes_(sizes_of(options, model.model.config())) {
  const checkpoint::ModelConfig& config = model.model.config();
  try {
    specials_ = text::find_special_tokens(model.tokenizer);
  } catch (const InputError&) {
    // Only chat needs them: `validate` refuses such a request by name.
  }
  backend::BackendOptions backend_options;
  backend_options.device = options.device;
  backend_options.precision = options.precision;
  backend_options.threads = options.threads;
  backend_options.pages = static_cast<std::size_t>(sizes_.blocks) + 1;
  backend_options.slots = static_cast<std::size_t>(sizes_.slots) + 1;
  backend_ = backend::make_backend(model.model, backend_options);
  if (wrap) backend_ = wrap(std::move(backend_));
  executor_ = std::make_unique<Executor>(*backend_);

  cache::CacheConfig cache_config;
  cache_config.geometry = executor_->geometry();
  cache_config.name.model = model.digest();
  cache_config.name.format =
      fmt::format("{} {} 1", backend::device_name(options.device), model::precision_name(options.precision));
  cache_config.name.mode = options.mode;
  cache_config.name.keep =
      options.mode == cache::ReuseMode::replay ? static_cast<std::uint32_t>(sizes_.replay_keep) : 0;
  cache_config.blocks = static_cast<std::uint32_t>(sizes_.blocks) + 1;
  cache_config.slots = static_cast<std::uint32_t>(backend_options.slots);
  cache_config.host_bytes = options.host_cache_bytes;
  cache_config.disk_folder = options.disk_cache;
  cache_config.disk_bytes = options.disk_cache.empty() ? 0 : options.disk_cache_bytes;
  cache_config.report = [](const std::string& line) { std::fprintf(stderr, "thalweg: %s\n", line.c_str()); };
  cache_ = std::make_unique<cache::PrefixCache>(cache_config, *executor_);

  SchedulerOptions scheduler_options;
  scheduler_options.batch_tokens = options.batch_tokens;
  scheduler_options.sequences = options.sequences;
  scheduler_options.snapshot_every = options.snapshot_every;
  scheduler_options.block_tokens = model::kPageTokens;
  scheduler_options.lookback = model.model.lookback();
  scheduler_options.block_bytes = cache_config.geometry.block_bytes;
  scheduler_options.slot_bytes = cache_config.geometry.slot_bytes();
  scheduler_options.context = sizes_.context;
  using Speculation = SpeculationOptions::Kind;
  if (options.speculation.kind != Speculation::off) {
    const int block = config.draft.layers > 0 ? config.draft.block_size : 0;
    if (options.speculation.length > block || block == 0) {
      throw UsageError(
          fmt::format("--speculate: expected at most {} drafts (the draft model's block), found {}", block,
                      speculation_name(options.speculation)));
    }
    options_.asynchronous = false;
    const bool needs_curve = options.speculation.kind != Speculation::fixed;
    policy_ =
        make_policy(options.speculation, needs_curve ? step_curve() : std::vector<StepCostPoint>{}, block);
  }
  scheduler_ = std::make_unique<Scheduler>(scheduler_options, *cache_, policy_.get());
  compiler_ = std::make_unique<grammar::Compiler>(model.tokenizer, config.vocab_size, config.eos_token_id);
  thread_ = std::thread([this] { run(); });
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

namespace {

// A step of `rows` rows at the beginnings of so many sequences, as even as can be, in pages and slots of
// their own. Tokens differ, so that rows choose their experts apart, as rows of real steps do.
void plan_beginnings(int rows, int sequences, const model::Model& model, model::StepPlan& plan) {
  std::mt19937 random(static_cast<std::uint32_t>(rows));
  const auto vocabulary = static_cast<std::uint32_t>(model.config().vocab_size);
  plan.clear();
  plan.lookback = model.lookback();
  for (int i = 0; i < sequences; ++i) {
    model::StepSequence sequence;
    sequence.slot = 1 + i;
    sequence.first_row = static_cast<std::int32_t>(plan.tokens.size());
    sequence.rows = rows / sequences + (i < rows % sequences ? 1 : 0);
    sequence.first_block = i;
    plan.blocks.push_back(1 + i);
    plan.sequences.push_back(sequence);
    plan.history.insert(plan.history.end(), static_cast<std::size_t>(plan.lookback), -1);
    for (int row = 0; row < sequence.rows; ++row) {
      plan.logit_rows.push_back(static_cast<std::int32_t>(plan.tokens.size()));
      plan.tokens.push_back(static_cast<std::int32_t>(random() % vocabulary));
      plan.image.push_back(0);
    }
  }
}

}  // namespace

// Forward time of steps of 1, 2, 4, ... rows, in memory that belongs to no sequence yet.
std::vector<StepCostPoint> Engine::measure_steps() {
  std::vector<StepCostPoint> curve;
  model::StepPlan plan;
  const auto places = static_cast<int>(std::min(sizes_.blocks, sizes_.slots));
  const int sequences = std::min(options_.sequences, places);
  const int most = std::min({options_.batch_tokens, sequences * static_cast<int>(model::kPageTokens),
                             options_.sequences * (model_.model.config().draft.block_size + 1)});
  for (int rows = 1; rows <= most; rows = rows < most ? std::min(rows * 2, most) : most + 1) {
    plan_beginnings(rows, std::min(rows, sequences), model_.model, plan);
    double best = std::numeric_limits<double>::infinity();
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto begin = Clock::now();
      backend_->run(plan);
      best = std::min(best, seconds_since(begin));
    }
    curve.push_back({rows, best * 1000});
  }
  return curve;
}

std::vector<StepCostPoint> Engine::step_curve() {
  if (options_.step_costs.empty()) return measure_steps();
  const std::string key =
      fmt::format("{}; model {}; {}; {} sequences, {} rows a step", backend_->describe(), model_.digest(),
                  options_.mode == cache::ReuseMode::exact ? "exact" : "replay", options_.sequences,
                  options_.batch_tokens);
  return stored_curve(options_.step_costs, key, [&] { return measure_steps(); });
}

std::string Engine::describe() const {
  const std::string mode =
      options_.mode == cache::ReuseMode::exact
          ? "exact"
          : fmt::format("replay of the last {} tokens (approximate)", sizes_.replay_keep);
  return fmt::format("{}; mode {}, speculation {}, context {}, {} sequences, {} rows a step, {}",
                     backend_->describe(), mode, speculation_name(options_.speculation), sizes_.context,
                     options_.sequences, options_.batch_tokens,
                     options_.asynchronous ? "asynchronous" : "synchronous");
}

void Engine::validate(const Request& request) const {
  const checkpoint::ModelConfig& config = model_.model.config();
  if (request.prompt.empty()) throw InputError("prompt", "at least one token", "none");
  for (std::size_t i = 0; i < request.prompt.size(); ++i) {
    const std::int32_t token = request.prompt[i];
    if (token < 0 || token >= config.vocab_size) {
      throw InputError(fmt::format("prompt[{}]", i), fmt::format("a token id below {}", config.vocab_size),
                       std::to_string(token));
    }
    if (token == config.image_token_id) {
      throw InputError(fmt::format("prompt[{}]", i), "text tokens only (images are not supported yet)",
                       "the image token");
    }
  }
  const auto length = static_cast<std::int64_t>(request.prompt.size());
  if (length > sizes_.context) {
    throw InputError("prompt", fmt::format("at most {} tokens (the context)", sizes_.context),
                     std::to_string(length));
  }
  engine::validate(request.sampling, config.vocab_size);
  if (request.sampling.prompt_logprobs && options_.mode == cache::ReuseMode::replay) {
    throw InputError("prompt_logprobs", "cannot be had in replay mode, which skips rows of the prompt");
  }
  if (request.constraint) validate_constraint(request);
  if (request.parse) {
    if (!specials_) text::find_special_tokens(model_.tokenizer);  // throws, naming the missing token
    text::check(*request.parse, "parse");
    if (!request.sampling.stop_strings.empty()) {
      throw InputError("stop_strings", "chat output takes its stop strings in parse.stop_sequences");
    }
    if (request.sampling.min_tokens > 0 && !request.parse->stop_sequences.empty()) {
      throw InputError("min_tokens", "does not go with the stop sequences of chat output");
    }
  }
}

void Engine::validate_constraint(const Request& request) const {
  if (request.sampling.ignore_eos) {
    throw InputError("ignore_eos", "does not go with a constraint, which ends with the end of sequence");
  }
  if (request.sampling.min_tokens > 0) {
    throw InputError("min_tokens",
                     "does not go with a constraint, which says itself when the output may end");
  }
  compiler_->check(*request.constraint);
}

RequestId Engine::submit(Request request, EventSink sink) {
  try {
    validate(request);
  } catch (const InputError&) {
    const std::lock_guard lock(mutex_);
    ++published_.refused;
    throw;
  }
  auto active = std::make_shared<ActiveRequest>();
  const auto length = static_cast<std::int64_t>(request.prompt.size());
  // The last token of an answer needs no place in the cache.
  active->max_length = sizes_.context + 1;
  if (request.sampling.max_tokens)
    active->max_length = length + std::min(active->max_length - length, *request.sampling.max_tokens);
  active->last_resume = length;
  if (options_.mode == cache::ReuseMode::replay) {
    // Decoder windows are not cached: whatever the answer's length when it resumes, they begin here.
    active->decoder_floor = std::max<std::int64_t>(0, length - sizes_.replay_keep);
    active->last_resume = active->decoder_floor;
  }
  if (!request.sampling.seed) request.sampling.seed = random_seed();
  active->request = std::move(request);
  active->sink = std::move(sink);
  const std::lock_guard lock(mutex_);
  if (stopping_) throw WorkError(failure_.empty() ? "the engine is stopping" : failure_);
  active->id = next_request_++;
  ++unfinished_;
  ++published_.admitted;
  ++published_.waiting;
  const RequestId id = active->id;
  incoming_.push_back({std::move(active), 0, nullptr, 0, nullptr, nullptr});
  arrived_.notify_one();
  return id;
}

void Engine::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  incoming_.push_back({nullptr, id, nullptr, 0, nullptr, nullptr});
  arrived_.notify_one();
}

void Engine::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return unfinished_ == 0; });
}

EngineStatistics Engine::statistics() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

void Engine::check_invariants() {
  drain();
  std::promise<void> checked;
  std::future<void> result = checked.get_future();
  {
    const std::lock_guard lock(mutex_);
    incoming_.push_back({nullptr, 0, &checked, 0, nullptr, nullptr});
  }
  arrived_.notify_one();
  result.get();
}

}  // namespace thalweg::engine
