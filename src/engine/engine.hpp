// The engine: requests in, events out. Many sequences share every step; the same answer comes out however it
// was computed (docs/engine.md).
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/backend.hpp"
#include "cache/prefix_cache.hpp"
#include "engine/executor.hpp"
#include "engine/loaded_model.hpp"
#include "engine/options.hpp"
#include "engine/request.hpp"
#include "engine/scheduler.hpp"
#include "engine/speculation/policy.hpp"
#include "engine/statistics.hpp"
#include "grammar/compiler.hpp"

namespace thalweg::engine {

/// Thread rules: submit, cancel, statistics and drain may be called from any thread; sinks are called on the
/// engine's thread and must not block, throw, or call drain. They may submit and cancel. If the device fails,
/// every unfinished answer ends as failed and nothing more is taken.
class Engine {
 public:
  /// Puts something between engine and backend.
  using BackendWrapper = std::function<std::unique_ptr<backend::Backend>(std::unique_ptr<backend::Backend>)>;

  /// `model` must outlive it. Throws UsageError for options that cannot work together. `wrap` is for tests
  /// that watch the backend or make it do what it seldom does by itself.
  Engine(const LoadedModel& model, const EngineOptions& options, const BackendWrapper& wrap = {});
  /// Aborts what is unfinished (its sinks hear of it) and stops.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Takes a request. Throws InputError naming the field if it cannot ever be served (empty or too long
  /// prompt, tokens out of range, parameters out of range); then nothing was admitted. Throws WorkError when
  /// the engine has stopped.
  RequestId submit(Request request, EventSink sink);
  /// Ends a request; unknown and finished ids are ignored. Its answers end with Finish::aborted.
  void cancel(RequestId id);
  /// Returns when no request is unfinished.
  void drain();

  EngineStatistics statistics() const;
  /// For people: backend, mode, sizes.
  std::string describe() const;
  std::int64_t context() const { return sizes_.context; }
  /// Waits until idle, then checks every count of the cache. For tests.
  void check_invariants();

 private:
  struct Incoming {
    std::shared_ptr<ActiveRequest> submitted;
    RequestId cancelled = 0;
    std::promise<void>* check = nullptr;
    RequestId compiled = 0;  ///< its constraint: `grammar`, or `error`
    std::shared_ptr<const grammar::CompiledGrammar> grammar;
    std::exception_ptr error;
  };

  void run();
  void serve();
  bool take_incoming(bool wait);
  void receive(std::shared_ptr<ActiveRequest> active);
  void compile(const std::shared_ptr<ActiveRequest>& active);
  void take_grammar(Incoming& item);
  std::shared_ptr<ActiveRequest> take_waiting(RequestId id);
  void start(std::shared_ptr<ActiveRequest> active);
  void abort(RequestId id, Finish reason, const std::string& error = {});
  void end_all(Finish finish, const std::string& error);
  void check_deadlines();
  void fail_first();
  void process(Step& step);
  void take_prompt_logprobs(Step& step);
  void take_tokens(Sequence& sequence, const StepPart& part, SampleTask& task);
  bool take_token(Sequence& sequence, std::int32_t token, bool accepted_draft,
                  const OutputLogprobs* logprobs);
  std::vector<StepCostPoint> step_curve();
  std::vector<StepCostPoint> measure_steps();
  std::optional<Finish> ending(Sequence& sequence, std::int32_t token, Event& event);
  void end_answer(Sequence& sequence, Finish finish, Event& event);
  void count_request(const ActiveRequest& active, Finish finish);
  void publish_statistics();
  void validate(const Request& request) const;
  void validate_constraint(const Request& request) const;

  const LoadedModel& model_;
  EngineOptions options_;
  EngineSizes sizes_;
  std::optional<text::SpecialTokens> specials_;
  std::unique_ptr<backend::Backend> backend_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<cache::PrefixCache> cache_;
  std::unique_ptr<SpeculationPolicy> policy_;
  std::unique_ptr<Scheduler> scheduler_;

  // Shared with callers.
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable idle_;
  std::vector<Incoming> incoming_;
  EngineStatistics published_;
  RequestId next_request_ = 1;
  std::uint64_t unfinished_ = 0;
  bool stopping_ = false;
  std::string failure_;  // why it stopped by itself

  // The engine's thread only.
  EngineStatistics counted_;
  std::vector<Incoming> taken_;
  std::uint64_t next_sequence_ = 1;
  std::int64_t step_number_ = 0;
  Clock::time_point next_deadline_ = Clock::time_point::max();
  std::array<Step, 2> steps_;
  std::vector<std::shared_ptr<ActiveRequest>> compiling_;  // requests that wait for their grammar

  std::unique_ptr<grammar::Compiler> compiler_;
  std::thread thread_;
};

}  // namespace thalweg::engine
