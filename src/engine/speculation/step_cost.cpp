#include "engine/speculation/step_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace thalweg::engine {
namespace {

double median_of(const std::deque<double>& values) {
  RunningMedian median;
  for (const double value : values) median.add(value);
  return median.median();
}

void push(std::deque<double>& window, double value, std::size_t limit) {
  window.push_back(value);
  if (window.size() > limit) window.pop_front();
}

}  // namespace

void RunningMedian::add(double value) {
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), value), value);
}

void RunningMedian::remove(double value) {
  sorted_.erase(std::lower_bound(sorted_.begin(), sorted_.end(), value));
}

double RunningMedian::median() const {
  const std::size_t middle = sorted_.size() / 2;
  return sorted_.size() % 2 == 1 ? sorted_[middle] : (sorted_[middle - 1] + sorted_[middle]) / 2;
}

StepCost::StepCost(std::vector<StepCostPoint> curve) : curve_(std::move(curve)) {
  int last = 0;
  for (std::size_t i = 0; i < curve_.size(); ++i) {
    if (curve_[i].rows <= last) {
      throw InputError(fmt::format("curve[{}]", i), fmt::format("more than {} rows", last),
                       fmt::format("{}", curve_[i].rows));
    }
    if (!(curve_[i].ms > 0 && std::isfinite(curve_[i].ms))) {
      throw InputError(fmt::format("curve[{}]", i), "a time above 0 ms", fmt::format("{}", curve_[i].ms));
    }
    last = curve_[i].rows;
  }
}

void StepCost::observe(int sequences, int rows, double forward_ms, double sampler_ms) {
  const auto point =
      std::find_if(curve_.begin(), curve_.end(), [&](const StepCostPoint& p) { return p.rows == rows; });
  if (point == curve_.end())
    throw InputError("step cost", "a step size of the curve", fmt::format("{} rows", rows));
  if (!std::isfinite(forward_ms) || !std::isfinite(sampler_ms)) {
    throw InputError("step cost", "finite times", fmt::format("{} and {} ms", forward_ms, sampler_ms));
  }
  const double slope = (forward_ms - point->ms) / rows;
  slopes_.push_back({rows, slope});
  by_rows_[rows].add(slope);
  if (slopes_.size() > slope_window) {
    by_rows_[slopes_.front().rows].remove(slopes_.front().slope);
    slopes_.pop_front();
  }
  push(sampler_by_count_[sequences], sampler_ms, sampler_window);
  push(sampler_, sampler_ms, sampler_window);
}

double StepCost::slope() const {
  RunningMedian medians;
  for (const auto& [rows, samples] : by_rows_) {
    if (samples.size() >= slope_samples) medians.add(samples.median());
  }
  return medians.size() == 0 ? 0 : medians.median();
}

StepCost::Sampler StepCost::sampler(int sequences) const {
  const auto same = sampler_by_count_.find(sequences);
  if (same != sampler_by_count_.end() && same->second.size() >= sampler_samples) {
    return {median_of(same->second), SamplerSource::same_sequence_count};
  }
  if (sampler_.size() >= sampler_samples) return {median_of(sampler_), SamplerSource::all_counts};
  return {};
}

std::string_view to_string(StepCost::SamplerSource source) {
  switch (source) {
    case StepCost::SamplerSource::same_sequence_count:
      return "same_sequence_count";
    case StepCost::SamplerSource::all_counts:
      return "all_counts";
    default:
      return "none";
  }
}

}  // namespace thalweg::engine
