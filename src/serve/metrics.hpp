// Counters of the service, and their Prometheus text form. The names are in docs/serving.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/engine.hpp"

namespace thalweg::serve {

/// Observations by size. Any thread may observe; reading is not one moment in time, but no observation is
/// lost or counted twice.
class Histogram {
 public:
  static constexpr const auto& kBounds = engine::kSecondBounds;

  void observe(double seconds);
  /// `# TYPE` line, buckets, sum and count.
  void write(std::string_view name, std::string_view help, std::string& out) const;

 private:
  std::array<std::atomic<std::uint64_t>, kBounds.size() + 1> counts_{};
  std::atomic<std::uint64_t> microseconds_{0};
};

/// Counted by the service itself; everything else on the page is the engine's. Thread-safe.
class Metrics {
 public:
  void count_request(std::string_view endpoint, int status);

  Histogram request_duration;
  Histogram time_to_first_token;
  Histogram time_between_tokens;
  std::atomic<std::uint64_t> reasoning_tokens{0};
  std::atomic<std::uint64_t> disconnects{0};   ///< clients that left before their answer was complete
  std::atomic<std::uint64_t> slow_readers{0};  ///< answers cut because the client did not read
  std::atomic<std::int64_t> open_connections{0};
  std::atomic<std::int64_t> open_answers{0};

  std::atomic<std::size_t> stored_responses{0};
  std::atomic<std::size_t> stored_response_bytes{0};

  /// The whole page. `engine` is absent while the model loads.
  std::string write(const std::optional<engine::EngineStatistics>& engine) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;
};

}  // namespace thalweg::serve
