// The engine: requests in, events out. Many sequences share every step; the same answer comes out however it
// was computed (docs/engine.md).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
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
#include "engine/request.hpp"
#include "engine/scheduler.hpp"
#include "engine/speculation/policy.hpp"

namespace thalweg::engine {

/// Everything that can be chosen about an engine. Sizes of 0 are derived: see each.
struct EngineOptions {
  model::Precision precision = model::Precision::reference;
  std::size_t threads = 0;  ///< 0: all processors
  cache::ReuseMode mode = cache::ReuseMode::exact;
  std::int32_t replay_keep = 0;       ///< 0: window + 2 x backtracking
  std::int32_t sequences = 16;        ///< running at once
  std::int32_t batch_tokens = 512;    ///< rows of a step
  std::int64_t context = 0;           ///< tokens of a sequence at most; 0: what the model and the cache allow
  std::int64_t cache_tokens = 0;      ///< tokens of global KV on the device; 0: 64 Ki
  std::int32_t snapshots = 32;        ///< window snapshots kept on the device
  std::int32_t snapshot_every = 512;  ///< tokens between the snapshots of a prompt
  std::size_t host_cache_bytes = std::size_t{256} << 20;
  std::filesystem::path disk_cache;  ///< empty: none
  std::size_t disk_cache_bytes = std::size_t{1} << 30;
  SpeculationOptions speculation;  ///< anything but off: steps are planned one after another
  bool asynchronous = true;        ///< plan the next step while the device computes this one
};

/// Counted since the start. In every snapshot: admitted = waiting + running + finished + aborted, and of the
/// prompts admitted to the device: prompt = reused + replayed + computed tokens.
struct EngineStatistics {
  std::uint64_t admitted = 0;
  std::uint64_t waiting = 0;  ///< requests none of whose answers is running
  std::uint64_t running = 0;
  std::uint64_t finished = 0;  ///< stop, length or failed
  std::uint64_t aborted = 0;   ///< by the caller or a deadline
  std::uint64_t refused = 0;   ///< never admitted
  std::uint64_t prompt_tokens = 0;
  std::uint64_t reused_tokens = 0;
  std::uint64_t replayed_tokens = 0;
  std::uint64_t computed_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t steps = 0;
  std::uint64_t rows = 0;
  std::uint64_t drafts_verified = 0;
  std::uint64_t drafts_accepted = 0;
  double draft_seconds = 0;   ///< of the device, drafting
  double device_seconds = 0;  ///< steps on the device
  double gap_seconds = 0;     ///< between steps while there was work
  double host_seconds = 0;    ///< planning and handling of results
  std::uint32_t free_blocks = 0;
  std::int32_t running_sequences = 0;
  SchedulerStatistics scheduler;
  cache::CacheStatistics cache;
};

/// Thread rules: submit, cancel, statistics and drain may be called from any thread; sinks are called on the
/// engine's thread and must not block or call drain.
class Engine {
 public:
  /// `model` must outlive it. Throws UsageError for options that cannot work together.
  Engine(const LoadedModel& model, const EngineOptions& options);
  /// Aborts what is unfinished (its sinks hear of it) and stops.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Takes a request. Throws InputError naming the field if it cannot ever be served (empty or too long
  /// prompt, tokens out of range, parameters out of range, more blocks than there are); then nothing was
  /// admitted.
  RequestId submit(Request request, EventSink sink);
  /// Ends a request; unknown and finished ids are ignored. Its answers end with Finish::aborted.
  void cancel(RequestId id);
  /// Returns when no request is unfinished.
  void drain();

  EngineStatistics statistics() const;
  /// For people: backend, mode, sizes.
  std::string describe() const;
  std::int64_t context() const { return context_; }
  /// Waits until idle, then checks every count of the cache. For tests.
  void check_invariants();

 private:
  struct Incoming {
    std::shared_ptr<ActiveRequest> submitted;
    RequestId cancelled = 0;
    std::promise<void>* check = nullptr;
  };

  void run();
  bool take_incoming(bool wait);
  void start(std::shared_ptr<ActiveRequest> active);
  void abort(RequestId id, Finish reason);
  void check_deadlines();
  void fail_first();
  void process(Step& step);
  void take_tokens(Sequence& sequence, const StepPart& part, SampleTask& task);
  bool take_token(Sequence& sequence, std::int32_t token, bool accepted_draft,
                  const OutputLogprobs* logprobs);
  std::vector<StepCostPoint> measure_steps();
  std::optional<Finish> ending(Sequence& sequence, std::int32_t token, Event& event);
  void end_answer(Sequence& sequence, Finish finish, Event& event);
  void publish_statistics();
  void validate(const Request& request) const;

  const LoadedModel& model_;
  EngineOptions options_;
  std::optional<text::SpecialTokens> specials_;
  std::unique_ptr<backend::Backend> backend_;
  std::int64_t context_ = 0;
  std::int64_t replay_keep_ = 0;
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

  // The engine's thread only.
  EngineStatistics counted_;
  std::vector<Incoming> taken_;
  std::uint64_t next_sequence_ = 1;
  std::int64_t step_number_ = 0;
  bool has_deadlines_ = false;
  std::thread thread_;
};

}  // namespace thalweg::engine
