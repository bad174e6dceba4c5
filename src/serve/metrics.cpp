#include "serve/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace thalweg::serve {
namespace {

constexpr double kMicroseconds = 1e6;

// Buckets as Prometheus wants them: each with all that is smaller.
template <class Bounds, class Counts>
void write_buckets(std::string_view name, const Bounds& bounds, const Counts& counts, double sum,
                   std::string& out) {
  const auto to = std::back_inserter(out);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    total += counts[i];
    fmt::format_to(to, "thalweg_{}_bucket{{le=\"{}\"}} {}\n", name, bounds[i], total);
  }
  total += counts[bounds.size()];
  fmt::format_to(to, "thalweg_{0}_bucket{{le=\"+Inf\"}} {1}\nthalweg_{0}_sum {2}\nthalweg_{0}_count {1}\n",
                 name, total, sum);
}

class Page {
 public:
  explicit Page(std::string& out) : out_(out) {}

  template <class Value>
  void counter(std::string_view name, std::string_view help, Value value) {
    head(name, help, "counter");
    fmt::format_to(std::back_inserter(out_), "thalweg_{} {}\n", name, value);
  }
  template <class Value>
  void gauge(std::string_view name, std::string_view help, Value value) {
    head(name, help, "gauge");
    fmt::format_to(std::back_inserter(out_), "thalweg_{} {}\n", name, value);
  }
  template <class Buckets>
  void histogram(std::string_view name, std::string_view help, const Buckets& buckets) {
    head(name, help, "histogram");
    write_buckets(name, buckets.bounds(), buckets.counts, buckets.sum, out_);
  }
  /// One counter for every place of a block at which something was counted.
  template <class Counts>
  void by_position(std::string_view name, std::string_view help, const Counts& counts) {
    head(name, help, "counter");
    for (std::size_t i = 0; i < counts.size() && counts[i] > 0; ++i) {
      fmt::format_to(std::back_inserter(out_), "thalweg_{}{{position=\"{}\"}} {}\n", name, i, counts[i]);
    }
  }
  void head(std::string_view name, std::string_view help, std::string_view type) {
    fmt::format_to(std::back_inserter(out_), "# HELP thalweg_{0} {1}\n# TYPE thalweg_{0} {2}\n", name, help,
                   type);
  }

 private:
  std::string& out_;
};

void write_engine(const engine::EngineStatistics& s, Page& page) {
  page.counter("engine_requests_admitted_total", "Requests the engine took", s.admitted);
  page.gauge("engine_requests_waiting", "Admitted requests none of whose answers is running", s.waiting);
  page.gauge("engine_requests_running", "Requests being computed", s.running);
  page.counter("engine_requests_finished_total", "Requests that ran to their end", s.finished);
  page.counter("engine_requests_aborted_total", "Requests cancelled or past their deadline", s.aborted);
  page.counter("engine_requests_refused_total", "Requests that could never be served", s.refused);
  page.counter("prompt_tokens_total", "Prompt tokens of finished requests", s.prompt_tokens);
  page.counter("prompt_reused_tokens_total", "Prompt tokens whose state came from a cache", s.reused_tokens);
  page.counter("prompt_replayed_tokens_total", "Cached prompt tokens run again to restore windows",
               s.replayed_tokens);
  page.counter("prompt_computed_tokens_total", "Prompt tokens computed", s.computed_tokens);
  page.counter("output_tokens_total", "Tokens generated", s.output_tokens);
  page.counter("steps_total", "Steps of the device", s.steps);
  page.counter("rows_total", "Rows computed", s.rows);
  page.counter("draft_tokens_verified_total", "Drafted tokens the model checked", s.drafts_verified);
  page.counter("draft_tokens_accepted_total", "Drafted tokens that stood", s.drafts_accepted);
  page.by_position("draft_position_tried_total", "Checked drafts whose predecessors in the block stood",
                   s.drafts_tried_at);
  page.by_position("draft_position_accepted_total", "Those of them that stood", s.drafts_accepted_at);
  page.histogram("queue_seconds", "From submission to the first block, of ended requests", s.queue_seconds);
  page.histogram("step_seconds", "Steps of the device", s.step_seconds);
  page.histogram("step_rows", "Rows of a step", s.step_rows);
  page.counter("device_seconds_total", "Time of steps on the device", s.device_seconds);
  page.counter("device_gap_seconds_total", "Time between steps while there was work", s.gap_seconds);
  page.counter("host_seconds_total", "Processor time of planning and handling results", s.host_seconds);
  page.gauge("cache_free_blocks", "Cache blocks that a new sequence could have", s.free_blocks);
  page.gauge("running_sequences", "Sequences on the device", s.running_sequences);
  page.counter("cache_evicted_blocks_total", "Cached blocks given up on the device", s.cache.evicted_blocks);
  page.counter("cache_reused_from_host_tokens_total", "Prompt tokens found in host memory",
               s.cache.reused_from_host);
  page.counter("cache_reused_from_disk_tokens_total", "Prompt tokens found on disk",
               s.cache.reused_from_disk);
  page.counter("preemptions_total", "Sequences that gave way to others",
               s.scheduler.preempted_saved + s.scheduler.preempted_dropped);
}

}  // namespace

void Histogram::observe(double seconds) {
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  counts_[static_cast<std::size_t>(bound - kBounds.begin())].fetch_add(1, std::memory_order_relaxed);
  microseconds_.fetch_add(static_cast<std::uint64_t>(std::max(seconds, 0.0) * kMicroseconds),
                          std::memory_order_relaxed);
}

void Histogram::write(std::string_view name, std::string_view help, std::string& out) const {
  Page(out).head(name, help, "histogram");
  std::array<std::uint64_t, kBounds.size() + 1> counts{};
  std::ranges::transform(counts_, counts.begin(),
                         [](const auto& count) { return count.load(std::memory_order_relaxed); });
  write_buckets(name, kBounds, counts,
                static_cast<double>(microseconds_.load(std::memory_order_relaxed)) / kMicroseconds, out);
}

void Metrics::count_request(std::string_view endpoint, int status) {
  const std::lock_guard lock(mutex_);
  ++requests_[{std::string(endpoint), status}];
}

std::string Metrics::write(const std::optional<engine::EngineStatistics>& engine) const {
  std::string out;
  Page page(out);
  page.head("http_requests_total", "Answered requests by endpoint and status", "counter");
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, count] : requests_) {
      fmt::format_to(std::back_inserter(out),
                     "thalweg_http_requests_total{{endpoint=\"{}\",status=\"{}\"}} {}\n", key.first,
                     key.second, count);
    }
  }
  page.gauge("http_open_connections", "Connections", open_connections.load());
  page.gauge("http_open_answers", "Answers being generated", open_answers.load());
  page.counter("http_disconnects_total", "Clients that left before their answer was complete",
               disconnects.load());
  page.counter("http_slow_readers_total", "Answers cut because the client did not read them",
               slow_readers.load());
  page.gauge("stored_responses", "Responses that can be continued by id", stored_responses.load());
  page.gauge("stored_response_bytes", "Memory they take", stored_response_bytes.load());
  page.counter("reasoning_tokens_total", "Generated tokens that were reasoning", reasoning_tokens.load());
  request_duration.write("request_duration_seconds", "From a generation request to the end of its answer",
                         out);
  time_to_first_token.write("time_to_first_token_seconds", "From admission to the first token", out);
  time_between_tokens.write("time_between_tokens_seconds", "Between tokens of one answer", out);
  page.gauge("ready", "1 once the model is loaded", engine ? 1 : 0);
  if (engine) write_engine(*engine, page);
  return out;
}

}  // namespace thalweg::serve
