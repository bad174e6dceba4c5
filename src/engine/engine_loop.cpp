// The engine's thread: takes requests, plans steps, hands out their results.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "engine/engine.hpp"

namespace thalweg::engine {
namespace {

// Time that this thread has computed: not what it waited for the device or for a processor.
double computed_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

void Engine::run() {
  std::string failure;
  try {
    serve();
  } catch (const std::exception& error) {
    failure = fmt::format("the engine stopped: {}", error.what());
  }
  executor_->drain();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    failure_ = failure;
    std::swap(taken_, incoming_);
  }
  for (Incoming& item : taken_) {
    if (item.submitted) start(std::move(item.submitted));
    if (item.check != nullptr)
      item.check->set_exception(std::make_exception_ptr(WorkError("the engine has stopped")));
  }
  taken_.clear();
  for (auto& active : compiling_) start(std::move(active));
  compiling_.clear();
  end_all(failure.empty() ? Finish::aborted : Finish::failed, failure);
  if (failure.empty() && !options_.disk_cache.empty()) cache_->flush();  // for the next process
  publish_statistics();
}

// The device computes one step while the next is planned; results of a step are handled while the one after
// it runs.
void Engine::serve() {
  Step* flying = nullptr;
  bool after_idle = false;
  for (std::size_t turn = 0;;) {
    const bool idle = flying == nullptr && scheduler_->sequences().empty();
    after_idle = after_idle || idle;
    if (!take_incoming(idle)) return;
    const double begin = computed_seconds();
    if (Clock::now() >= next_deadline_) check_deadlines();
    scheduler_->collect();
    Step& next = steps_[turn % 2];
    const bool planned = scheduler_->plan(next);
    if (planned) {
      next.after_idle = std::exchange(after_idle, false);
      executor_->launch(next);
      scheduler_->launched(next);
      ++step_number_;
      ++turn;
    }
    const double planning = computed_seconds() - begin;
    counted_.plan_seconds += planning;
    counted_.host_seconds += planning;
    if (!planned && flying == nullptr && !scheduler_->sequences().empty()) fail_first();
    if (flying != nullptr) process(*flying);
    flying = planned ? &next : nullptr;
    if (flying != nullptr && !options_.asynchronous) process(*std::exchange(flying, nullptr));
    publish_statistics();
  }
}

// False: the engine is to stop.
bool Engine::take_incoming(bool wait) {
  {
    std::unique_lock lock(mutex_);
    if (wait) arrived_.wait(lock, [&] { return stopping_ || !incoming_.empty(); });
    if (stopping_) return false;
    std::swap(taken_, incoming_);
  }
  for (Incoming& item : taken_) {
    if (item.submitted) {
      receive(std::move(item.submitted));
    } else if (item.compiled != 0) {
      take_grammar(item);
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

void Engine::receive(std::shared_ptr<ActiveRequest> active) {
  const Request& request = active->request;
  active->rank = step_number_ - request.priority * kPriorityHeadStart;
  if (request.deadline) next_deadline_ = std::min(next_deadline_, *request.deadline);
  if (request.constraint) {
    compile(active);
  } else {
    start(std::move(active));
  }
}

// No step waits for this: the request keeps its rank and comes to the scheduler when its grammar is there.
void Engine::compile(const std::shared_ptr<ActiveRequest>& active) {
  compiling_.push_back(active);
  const RequestId id = active->id;
  try {
    compiler_->compile(
        *active->request.constraint,
        [this, id](std::shared_ptr<const grammar::CompiledGrammar> grammar, std::exception_ptr error) {
          const std::lock_guard lock(mutex_);
          Incoming item;
          item.compiled = id;
          item.grammar = std::move(grammar);
          item.error = std::move(error);
          incoming_.push_back(std::move(item));
          arrived_.notify_one();
        });
  } catch (const Error& error) {
    abort(id, Finish::failed, error.what());
  }
}

// Removes a request that waits for its grammar; null if it does not, or not any more.
std::shared_ptr<ActiveRequest> Engine::take_waiting(RequestId id) {
  const auto found = std::ranges::find_if(compiling_, [&](const auto& active) { return active->id == id; });
  if (found == compiling_.end()) return nullptr;
  std::shared_ptr<ActiveRequest> active = std::move(*found);
  compiling_.erase(found);
  return active;
}

void Engine::take_grammar(Incoming& item) {
  if (item.error) {
    try {
      std::rethrow_exception(item.error);
    } catch (const InputError& error) {
      abort(item.compiled, Finish::refused, error.what());
    } catch (const std::exception& error) {
      abort(item.compiled, Finish::failed, error.what());
    }
    return;
  }
  std::shared_ptr<ActiveRequest> active = take_waiting(item.compiled);
  if (active == nullptr) return;  // it has ended meanwhile
  active->grammar = std::move(item.grammar);
  start(std::move(active));
}

void Engine::start(std::shared_ptr<ActiveRequest> active) {
  const Request& request = active->request;
  active->open_choices = request.sampling.n;
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
    sequence->sampling = std::make_shared<SamplingState>(sampler, request.prompt,
                                                         room - request.prompt.size(), active->grammar);
    sequence->output.emplace(model_.tokenizer, specials_ ? &*specials_ : nullptr, request, stops);
    scheduler_->add(std::move(sequence));
  }
}

void Engine::abort(RequestId id, Finish reason, const std::string& error) {
  if (auto waiting = take_waiting(id)) start(std::move(waiting));  // only to end as any other
  for (const auto& sequence : scheduler_->sequences()) {
    if (sequence->active->id != id || sequence->stage == Sequence::Stage::finished) continue;
    Event event;
    event.error = error;
    end_answer(*sequence, reason, event);
  }
}

void Engine::end_all(Finish finish, const std::string& error) {
  for (const auto& sequence : scheduler_->sequences()) {
    if (sequence->stage == Sequence::Stage::finished) continue;
    Event event;
    event.error = error;
    end_answer(*sequence, finish, event);
  }
}

void Engine::check_deadlines() {
  const Clock::time_point now = Clock::now();
  next_deadline_ = Clock::time_point::max();
  for (const auto& active : std::vector(compiling_)) {
    const auto& deadline = active->request.deadline;
    if (deadline && now >= *deadline) abort(active->id, Finish::deadline);
    if (deadline && now < *deadline) next_deadline_ = std::min(next_deadline_, *deadline);
  }
  for (const auto& sequence : scheduler_->sequences()) {
    const auto& deadline = sequence->active->request.deadline;
    if (sequence->stage == Sequence::Stage::finished || !deadline) continue;
    if (now < *deadline) {
      next_deadline_ = std::min(next_deadline_, *deadline);
      continue;
    }
    Event event;
    end_answer(*sequence, Finish::deadline, event);
  }
}

// Nothing runs and nothing can be planned: whoever is first would otherwise be waited for forever. Sizes are
// checked when a request comes, so this does not happen; if it does, one request fails instead of all.
void Engine::fail_first() {
  for (const auto& sequence : scheduler_->sequences()) {
    if (sequence->stage == Sequence::Stage::finished) continue;
    Event event;
    event.error = fmt::format("no room for {} tokens: {} of {} blocks can be had", sequence->length(),
                              cache_->available_blocks(), sizes_.blocks);
    end_answer(*sequence, Finish::failed, event);
    return;
  }
}

void Engine::process(Step& step) {
  executor_->wait(step);
  const double begin = computed_seconds();
  // What it was to write is already known to the cache: there is no going on from here.
  if (step.error) std::rethrow_exception(step.error);
  ++counted_.steps;
  counted_.rows += step.plan.tokens.size();
  counted_.device_seconds += step.seconds;
  counted_.step_seconds.observe(step.seconds);
  counted_.step_rows.observe(static_cast<double>(step.plan.tokens.size()));
  counted_.draft_seconds += step.draft_seconds;
  if (!step.after_idle) counted_.gap_seconds += step.gap;
  scheduler_->learn_cost(static_cast<std::int64_t>(step.plan.tokens.size()), step.seconds);
  take_prompt_logprobs(step);
  for (const StepPart& part : step.parts) {
    if (!scheduler_->landed(part) || part.sample < 0) continue;
    take_tokens(*part.sequence, part, step.samples[part.sample]);
  }
  if (policy_ != nullptr) {
    policy_->observe_step(static_cast<int>(step.plan.tokens.size()), step.drafted,
                          step.seconds - step.draft_seconds, step.draft_seconds);
  }
  counted_.host_seconds += computed_seconds() - begin;
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
  published_.running = scheduler_->running_requests();
  unfinished_ = admitted - counted_.finished - counted_.aborted;
  published_.waiting = unfinished_ - published_.running;
  if (unfinished_ == 0) idle_.notify_all();
}

}  // namespace thalweg::engine
