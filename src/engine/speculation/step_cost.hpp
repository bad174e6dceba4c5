// What a verification step of so many rows takes, learned from measurements at start and corrected while
// serving.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace thalweg::engine {

/// Forward time of one captured step size, measured at start.
struct StepCostPoint {
  int rows = 0;
  double ms = 0;
};

/// The median of a set of numbers that come and go. An even count averages the middle two.
class RunningMedian {
 public:
  void add(double value);
  /// `value` must have been added.
  void remove(double value);
  std::size_t size() const { return sorted_.size(); }
  double median() const;  ///< of at least one value

 private:
  std::vector<double> sorted_;
};

/// time(rows) = curve(g) + max(0, slope) * g + sampler, with g the smallest captured size that holds the
/// rows.
///
/// The curve is measured without context; the slope per row repairs that from the steps that ran: the median,
/// over step sizes, of the median excess per row of each size. The sampler's time is a median of recent steps
/// with the same number of sequences. Source: published engine (engine specification, section 4.4). Not
/// thread-safe.
class StepCost {
 public:
  static constexpr std::size_t slope_window = 5000;  ///< samples kept, over all sizes
  static constexpr std::size_t slope_samples = 10;   ///< a size counts from so many on
  static constexpr std::size_t sampler_window = 9;
  static constexpr std::size_t sampler_samples = 5;

  enum class SamplerSource { none, all_counts, same_sequence_count };
  struct Sampler {
    double ms = 0;
    SamplerSource source = SamplerSource::none;
  };

  /// Throws InputError unless rows rise strictly from at least 1 and times are finite and above 0. May be
  /// empty.
  explicit StepCost(std::vector<StepCostPoint> curve);

  /// Takes in one step that ran as the captured size `rows`, with `sequences` in it. Throws InputError if the
  /// curve has no such size or a time is not finite.
  void observe(int sequences, int rows, double forward_ms, double sampler_ms);

  const std::vector<StepCostPoint>& curve() const { return curve_; }
  /// Milliseconds per row on top of the curve; may be negative, which `ms` takes as 0; 0 without enough
  /// samples.
  double slope() const;
  Sampler sampler(int sequences) const;

 private:
  struct Sample {
    int rows;
    double slope;
  };

  std::vector<StepCostPoint> curve_;
  std::deque<Sample> slopes_;             // in order of arrival
  std::map<int, RunningMedian> by_rows_;  // the same samples by step size
  std::map<int, std::deque<double>> sampler_by_count_;
  std::deque<double> sampler_;
};

std::string_view to_string(StepCost::SamplerSource source);

}  // namespace thalweg::engine
