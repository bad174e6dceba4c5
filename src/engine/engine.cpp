#include "engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

#include "base/error.hpp"

namespace thalweg::engine {
namespace {

constexpr std::int64_t kDefaultCacheTokens = 64 * 1024;

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void check_sizes(const EngineOptions& options) {
  if (options.sequences < 1)
    throw UsageError("--sequences: expected at least 1, found " + std::to_string(options.sequences));
  if (options.batch_tokens <= options.sequences) {
    throw UsageError(fmt::format("--batch-tokens: expected more than --sequences ({}), found {}",
                                 options.sequences, options.batch_tokens));
  }
  if (options.snapshot_every < model::kPageTokens || options.snapshot_every % model::kPageTokens != 0) {
    throw UsageError(fmt::format("--snapshot-every: expected a multiple of {}, found {}", model::kPageTokens,
                                 options.snapshot_every));
  }
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
    case Finish::failed:
      return "failed";
  }
  return "";
}

Engine::Engine(const LoadedModel& model, const EngineOptions& options) : model_(model), options_(options) {
  check_sizes(options);
  const checkpoint::ModelConfig& config = model.model.config();
  const int backtracking = model::default_backtracking(config);
  const std::int64_t tokens = options.cache_tokens > 0 ? options.cache_tokens : kDefaultCacheTokens;
  const std::int64_t blocks = (tokens + model::kPageTokens - 1) / model::kPageTokens;
  const std::int64_t most =
      std::min<std::int64_t>(config.max_position_embeddings, blocks * model::kPageTokens);
  if (options.context > most) {
    throw UsageError(
        fmt::format("--context: expected at most {} (max_position_embeddings and --cache-tokens), found {}",
                    most, options.context));
  }
  context_ = options.context > 0 ? options.context : most;
  const std::int64_t least_keep = config.sliding_window + backtracking;
  replay_keep_ = options.replay_keep > 0 ? options.replay_keep : least_keep + backtracking;
  if (options.mode == cache::ReuseMode::replay && replay_keep_ < least_keep) {
    throw UsageError(fmt::format("--replay-keep: expected at least {} (window + backtracking), found {}",
                                 least_keep, replay_keep_));
  }
  try {
    specials_ = text::find_special_tokens(model.tokenizer);
  } catch (const InputError&) {
    // Only chat needs them: `validate` refuses such a request by name.
  }
  backend::BackendOptions backend_options;
  backend_options.precision = options.precision;
  backend_options.threads = options.threads;
  backend_options.pages = static_cast<std::size_t>(blocks) + 1;
  backend_options.slots = static_cast<std::size_t>(options.sequences) + options.snapshots + 1;
  backend_ = backend::make_cpu_backend(model.model, backend_options);
  executor_ = std::make_unique<Executor>(*backend_);

  cache::CacheConfig cache_config;
  cache_config.geometry = executor_->geometry();
  cache_config.name.model = model.digest();
  cache_config.name.format = fmt::format("cpu {} 1", model::precision_name(options.precision));
  cache_config.name.mode = options.mode;
  cache_config.name.keep =
      options.mode == cache::ReuseMode::replay ? static_cast<std::uint32_t>(replay_keep_) : 0;
  cache_config.blocks = static_cast<std::uint32_t>(blocks) + 1;
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
  scheduler_options.lookback = model.model.lookback();
  scheduler_options.block_bytes = cache_config.geometry.block_bytes;
  scheduler_options.slot_bytes = cache_config.geometry.slot_bytes();
  scheduler_options.context = context_;
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
        make_policy(options.speculation, needs_curve ? measure_steps() : std::vector<StepCostPoint>{}, block);
  }
  scheduler_ = std::make_unique<Scheduler>(scheduler_options, *cache_, policy_.get());
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

// Forward time of steps of 1, 2, 4, ... rows, on the reserved page and slot that belong to no sequence.
std::vector<StepCostPoint> Engine::measure_steps() {
  std::vector<StepCostPoint> curve;
  model::StepPlan plan;
  const int most =
      std::min(options_.batch_tokens, options_.sequences * (model_.model.config().draft.block_size + 1));
  for (int rows = 1; rows <= most; rows = rows < most ? std::min(rows * 2, most) : most + 1) {
    plan.clear();
    plan.lookback = model_.model.lookback();
    for (int row = 0; row < rows; ++row) {
      plan.tokens.push_back(0);
      plan.image.push_back(0);
      plan.logit_rows.push_back(row);
      plan.history.insert(plan.history.end(), static_cast<std::size_t>(plan.lookback), -1);
      model::StepSequence sequence;
      sequence.first_row = row;
      sequence.rows = 1;
      plan.sequences.push_back(sequence);
    }
    plan.blocks.assign(1, 0);
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

std::string Engine::describe() const {
  const std::string mode = options_.mode == cache::ReuseMode::exact
                               ? "exact"
                               : fmt::format("replay of the last {} tokens (approximate)", replay_keep_);
  return fmt::format("{}; mode {}, speculation {}, context {}, {} sequences, {} rows a step, {}",
                     backend_->describe(), mode, speculation_name(options_.speculation), context_,
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
  if (length > context_) {
    throw InputError("prompt", fmt::format("at most {} tokens (the context)", context_),
                     std::to_string(length));
  }
  engine::validate(request.sampling, config.vocab_size);
  if (request.sampling.prompt_logprobs && options_.mode == cache::ReuseMode::replay) {
    throw InputError("prompt_logprobs", "cannot be had in replay mode, which skips rows of the prompt");
  }
  if (request.parse) {
    if (!specials_) text::find_special_tokens(model_.tokenizer);  // throws, naming the missing token
    text::check(*request.parse, "parse");
    if (!request.sampling.stop_strings.empty()) {
      throw InputError("stop_strings", "chat output takes its stop strings in parse.stop_sequences");
    }
  }
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
  active->max_length = context_ + 1;
  if (request.sampling.max_tokens)
    active->max_length = std::min(active->max_length, length + *request.sampling.max_tokens);
  if (options_.mode == cache::ReuseMode::replay)
    active->decoder_floor = std::max<std::int64_t>(0, length - replay_keep_);
  if (!request.sampling.seed) request.sampling.seed = random_seed();
  active->request = std::move(request);
  active->sink = std::move(sink);
  const std::lock_guard lock(mutex_);
  if (stopping_) throw WorkError("the engine is stopping");
  active->id = next_request_++;
  ++unfinished_;
  ++published_.admitted;
  ++published_.waiting;
  const RequestId id = active->id;
  incoming_.push_back({std::move(active), 0});
  arrived_.notify_one();
  return id;
}

void Engine::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  incoming_.push_back({nullptr, id});
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

// The device computes one step while the next is planned; results of a step are handled while the one after
// it runs.
void Engine::run() {
  // One is planned, one computes, and the one before it still holds the tokens that its rows refer to.
  Step steps[3];
  Step* flying = nullptr;
  for (std::size_t turn = 0; take_incoming(flying == nullptr && scheduler_->sequences().empty());) {
    const auto begin = Clock::now();
    if (has_deadlines_) check_deadlines();
    scheduler_->collect();
    Step& next = steps[turn % 3];
    const bool planned = scheduler_->plan(next);
    if (planned) {
      executor_->launch(next, flying);
      scheduler_->launched(next);
      ++step_number_;
      ++turn;
    }
    counted_.host_seconds += seconds_since(begin);
    if (!planned && flying == nullptr && !scheduler_->sequences().empty()) fail_first();
    if (flying != nullptr) process(*flying);
    flying = planned ? &next : nullptr;
    if (flying != nullptr && !options_.asynchronous) {
      process(*flying);
      flying = nullptr;
    }
    publish_statistics();
  }
  if (flying != nullptr) process(*flying);
  while (!scheduler_->sequences().empty()) {
    for (const auto& sequence : scheduler_->sequences()) {
      if (sequence->stage != Sequence::Stage::finished) abort(sequence->active->id, Finish::aborted);
    }
    scheduler_->collect();
  }
  publish_statistics();
}

// False: the engine is to stop.
bool Engine::take_incoming(bool wait) {
  {
    std::unique_lock lock(mutex_);
    if (wait) arrived_.wait(lock, [&] { return stopping_ || !incoming_.empty(); });
    if (stopping_) {
      for (Incoming& item : incoming_) {
        if (item.submitted) taken_.push_back(std::move(item));
      }
      incoming_.clear();
      lock.unlock();
      for (Incoming& item : taken_) start(std::move(item.submitted));
      taken_.clear();
      return false;
    }
    std::swap(taken_, incoming_);
  }
  for (Incoming& item : taken_) {
    if (item.submitted) {
      start(std::move(item.submitted));
    } else if (item.check != nullptr) {
      try {
        cache_->check_invariants();
        item.check->set_value();
      } catch (...) {
        item.check->set_exception(std::current_exception());
      }
    } else {
      abort(item.cancelled, Finish::aborted);
    }
  }
  taken_.clear();
  return true;
}

void Engine::start(std::shared_ptr<ActiveRequest> active) {
  const Request& request = active->request;
  active->rank = step_number_ - request.priority * kPriorityHeadStart;
  active->open_choices = request.sampling.n;
  has_deadlines_ = has_deadlines_ || request.deadline.has_value();
  std::shared_ptr<const StopStrings> stops;
  if (!request.sampling.stop_strings.empty())
    stops = std::make_shared<StopStrings>(request.sampling.stop_strings);
  const auto room = static_cast<std::size_t>(active->max_length);
  for (std::int32_t choice = 0; choice < request.sampling.n; ++choice) {
    auto sequence = std::make_unique<Sequence>();
    sequence->id = next_sequence_++;
    sequence->active = active;
    sequence->choice = choice;
    sequence->tokens = request.prompt;
    sequence->prompt_length = static_cast<std::int64_t>(request.prompt.size());
    const Sampler sampler(request.sampling, choice_seed(*request.sampling.seed, choice),
                          model_.model.config().vocab_size, model_.model.config().eos_token_id);
    sequence->sampling =
        std::make_shared<SamplingState>(sampler, request.prompt, room - request.prompt.size());
    sequence->output.emplace(model_.tokenizer, specials_ ? &*specials_ : nullptr, request, stops);
    scheduler_->add(std::move(sequence));
  }
}

void Engine::abort(RequestId id, Finish reason) {
  for (const auto& sequence : scheduler_->sequences()) {
    if (sequence->active->id != id || sequence->stage == Sequence::Stage::finished) continue;
    Event event;
    end_answer(*sequence, reason, event);
  }
}

void Engine::check_deadlines() {
  const Clock::time_point now = Clock::now();
  for (const auto& sequence : scheduler_->sequences()) {
    const auto& deadline = sequence->active->request.deadline;
    if (sequence->stage == Sequence::Stage::finished || !deadline || now < *deadline) continue;
    Event event;
    end_answer(*sequence, Finish::deadline, event);
  }
}

// Nothing runs and nothing can be planned: an answer that does not fit would otherwise be waited for forever.
void Engine::fail_first() {
  for (const auto& sequence : scheduler_->sequences()) {
    if (sequence->stage == Sequence::Stage::finished) continue;
    Event event;
    event.error = fmt::format("no room for {} tokens: {} of {} blocks can be had", sequence->length(),
                              cache_->available_blocks(), context_ / model::kPageTokens);
    end_answer(*sequence, Finish::failed, event);
    return;
  }
}

void Engine::process(Step& step) {
  executor_->wait(step);
  const auto begin = Clock::now();
  ++counted_.steps;
  counted_.rows += step.plan.tokens.size();
  counted_.device_seconds += step.seconds;
  counted_.gap_seconds += step.gap;
  scheduler_->learn_cost(static_cast<std::int64_t>(step.plan.tokens.size()), step.seconds);
  for (std::size_t i = 0; i < step.prompt_task_count; ++i) {
    step.prompt_tasks[i].sequence->active->prompt_logprobs.push_back(step.prompt_tasks[i].result);
  }
  for (const StepPart& part : step.parts) {
    Sequence& sequence = *part.sequence;
    --sequence.in_flight;
    if (sequence.stage == Sequence::Stage::finished) continue;
    if (step.error) {
      Event event;
      try {
        std::rethrow_exception(step.error);
      } catch (const std::exception& error) {
        event.error = error.what();
      }
      end_answer(sequence, Finish::failed, event);
      continue;
    }
    if (part.sample < 0) continue;
    sequence.pending = 0;
    take_tokens(sequence, part, step.samples[part.sample]);
  }
  counted_.draft_seconds += step.draft_seconds;
  if (policy_ != nullptr) {
    policy_->observe_step(static_cast<int>(step.plan.tokens.size()), step.drafted,
                          step.seconds - step.draft_seconds, step.draft_seconds);
  }
  counted_.host_seconds += seconds_since(begin);
}

void Engine::take_tokens(Sequence& sequence, const StepPart& part, SampleTask& task) {
  const auto verified = static_cast<int>(task.drafts.size());
  if (verified > 0) {
    const int accepted = static_cast<int>(task.tokens.size()) - 1;
    counted_.drafts_verified += static_cast<std::uint64_t>(verified);
    counted_.drafts_accepted += static_cast<std::uint64_t>(accepted);
    policy_->observe_drafts({sequence.confidences, verified, accepted});
    // The rows of wrong drafts are as if they had never been: their positions are computed again.
    sequence.computed = part.first_position + 1 + accepted;
  }
  sequence.drafts.assign(task.next_drafts.begin(), task.next_drafts.end());
  sequence.confidences.assign(task.next_confidences.begin(), task.next_confidences.end());
  if (!task.error.empty()) task.tokens.pop_back();
  for (std::size_t i = 0; i < task.tokens.size(); ++i) {
    const bool accepted = i + 1 < task.tokens.size() || !task.error.empty();
    if (take_token(sequence, task.tokens[i], accepted, task.has_logprobs ? &task.logprobs[i] : nullptr))
      return;
  }
  if (task.error.empty()) return;
  Event event;
  event.error = task.error;
  end_answer(sequence, Finish::failed, event);
}

// True: the answer has ended.
bool Engine::take_token(Sequence& sequence, std::int32_t token, bool accepted_draft,
                        const OutputLogprobs* logprobs) {
  Event event;
  sequence.tokens.push_back(token);
  event.token = token;
  event.accepted_draft = accepted_draft;
  event.logprobs = logprobs;
  const bool first = sequence.produced() == 1;
  if (first && sequence.choice == 0 && sequence.active->request.sampling.prompt_logprobs) {
    event.prompt_logprobs = &sequence.active->prompt_logprobs;
  }
  if (const std::optional<Finish> finish = ending(sequence, token, event)) {
    end_answer(sequence, *finish, event);
    return true;
  }
  event.request = sequence.active->id;
  event.choice = sequence.choice;
  event.usage = sequence.active->usage;
  event.usage.prompt_tokens = sequence.prompt_length;
  sequence.active->sink(event);
  return false;
}

// The rules that end an answer, in this order: end of sequence and stop tokens, stop strings, length.
std::optional<Finish> Engine::ending(Sequence& sequence, std::int32_t token, Event& event) {
  const SamplingParams& params = sequence.active->request.sampling;
  const bool is_eos = token == model_.model.config().eos_token_id && !params.ignore_eos;
  const bool armed = sequence.produced() >= params.min_tokens;
  if (is_eos) return Finish::stop;
  if (std::ranges::find(params.stop_tokens, token) != params.stop_tokens.end()) return Finish::stop;
  if (sequence.output->push(token, armed, event)) return Finish::stop;
  if (sequence.full()) return Finish::length;
  return std::nullopt;
}

void Engine::end_answer(Sequence& sequence, Finish finish, Event& event) {
  ActiveRequest& active = *sequence.active;
  const bool complete = finish == Finish::stop || finish == Finish::length;
  if (event.stop_string.empty()) sequence.output->finish(event);
  event.request = active.id;
  event.choice = sequence.choice;
  event.finish = finish;
  event.usage = active.usage;
  event.usage.prompt_tokens = sequence.prompt_length;
  event.usage.output_tokens = static_cast<std::int64_t>(sequence.tokens.size()) - sequence.prompt_length;
  const bool ends_with_eos = event.token && *event.token == model_.model.config().eos_token_id &&
                             !active.request.sampling.ignore_eos && finish == Finish::stop;
  if (ends_with_eos) --event.usage.output_tokens;
  scheduler_->finish(sequence, complete);
  active.sink(event);
  counted_.output_tokens += static_cast<std::uint64_t>(event.usage.output_tokens);
  if (--active.open_choices > 0) return;
  if (active.prompt_counted) {
    counted_.prompt_tokens += static_cast<std::uint64_t>(active.usage.prompt_tokens);
    counted_.reused_tokens += static_cast<std::uint64_t>(active.usage.reused_tokens);
    counted_.replayed_tokens += static_cast<std::uint64_t>(active.usage.replayed_tokens);
    counted_.computed_tokens += static_cast<std::uint64_t>(active.usage.computed_tokens);
  }
  const bool was_aborted = finish == Finish::aborted || finish == Finish::deadline;
  ++(was_aborted ? counted_.aborted : counted_.finished);
}

void Engine::publish_statistics() {
  counted_.free_blocks = cache_->available_blocks();
  counted_.running_sequences = scheduler_->running();
  counted_.scheduler = scheduler_->statistics();
  counted_.cache = cache_->statistics();
  const std::lock_guard lock(mutex_);
  const std::uint64_t admitted = published_.admitted;
  const std::uint64_t refused = published_.refused;
  published_ = counted_;
  published_.admitted = admitted;
  published_.refused = refused;
  published_.running = 0;
  RequestId last = 0;
  for (const auto& sequence : scheduler_->sequences()) {
    // Answers of one request stand together.
    if (sequence->stage != Sequence::Stage::running || sequence->active->id == last) continue;
    last = sequence->active->id;
    ++published_.running;
  }
  unfinished_ = admitted - counted_.finished - counted_.aborted;
  published_.waiting = unfinished_ - published_.running;
  if (unfinished_ == 0) idle_.notify_all();
}

void Engine::check_invariants() {
  drain();
  std::promise<void> checked;
  std::future<void> result = checked.get_future();
  {
    const std::lock_guard lock(mutex_);
    incoming_.push_back({nullptr, 0, &checked});
  }
  arrived_.notify_one();
  result.get();
}

}  // namespace thalweg::engine
