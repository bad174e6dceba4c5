#include "engine/speculation/adaptive_policy.hpp"

#include <algorithm>
#include <cmath>

namespace thalweg::engine {
namespace {

constexpr double kSmoothing = 0.05;        // weight of the newest measurement once many are known
constexpr std::int64_t kProbeFirst = 64;   // steps without drafts before they are tried again; every try in
constexpr std::int64_t kProbeLast = 2048;  // vain doubles them, up to so many
constexpr std::int64_t kProbeLength = 2;   // steps of a try

}  // namespace

void RunningMean::add(double value) {
  ++seen_;
  mean_ += std::max(kSmoothing, 1 / seen_) * (value - mean_);
}

ConfidenceCalibration::Place ConfidenceCalibration::place_of(float confidence) {
  const float place = std::clamp(confidence * kBins - 0.5F, 0.0F, kBins - 1.0F);
  const auto low = static_cast<std::size_t>(place);
  return {low, std::min(low + 1, kBins - 1), place - static_cast<float>(low)};
}

float ConfidenceCalibration::rate(float confidence) const {
  const Place place = place_of(confidence);
  const auto error = [&](std::size_t bin) { return excess_[bin] / (seen_[bin] + kPrior); };
  const double corrected =
      confidence + (1 - place.share) * error(place.low) + place.share * error(place.high);
  return static_cast<float>(std::clamp(corrected, 0.0, 1.0));
}

void ConfidenceCalibration::observe(float confidence, bool accepted) {
  const Place place = place_of(confidence);
  const double excess = (accepted ? 1 : 0) - confidence;
  const auto add = [&](std::size_t bin, double weight) {
    const double keep = 1 - weight / kMemory;
    seen_[bin] = seen_[bin] * keep + weight;
    excess_[bin] = excess_[bin] * keep + weight * excess;
  };
  add(place.low, 1 - place.share);
  add(place.high, place.share);
}

AdaptivePolicy::AdaptivePolicy(std::vector<StepCostPoint> curve, int block)
    : curve_(std::move(curve)), block_(block), block_gain_(block / 2.0), block_rows_(block / 2.0) {}

// Between the measured sizes the time is interpolated; beyond them it grows as at the end.
double AdaptivePolicy::forward_seconds(int rows, Lengths lengths) const {
  const double correction = correction_[static_cast<std::size_t>(lengths)].get();
  if (curve_.empty()) return correction * rows;
  const auto above =
      std::find_if(curve_.begin(), curve_.end(), [&](const StepCostPoint& p) { return p.rows >= rows; });
  const auto high = above == curve_.end() ? curve_.end() - 1 : above;
  if (high == curve_.begin() || (above != curve_.end() && above->rows == rows))
    return correction * high->ms / 1000;
  const auto low = high - 1;
  const double slope = (high->ms - low->ms) / (high->rows - low->rows);
  return correction * (low->ms + slope * (rows - low->rows)) / 1000;
}

// The number of verified rows with the most expected tokens per second; returns it after marking `verify`.
int AdaptivePolicy::choose_rows(std::span<DraftView> sequences, int other_rows) {
  candidates_.clear();
  const auto drafts_of = [](const DraftView& view) {
    return std::min(view.limit, static_cast<int>(view.confidences.size()));
  };
  bool even_limits = true;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const DraftView& view = sequences[i];
    even_limits = even_limits && drafts_of(view) == drafts_of(sequences[0]);
    double product = 1;
    for (int j = 0; j < drafts_of(view); ++j) {
      product *= calibration_.rate(view.confidences[j]);
      candidates_.push_back({product, static_cast<std::uint32_t>(i)});
    }
  }
  // Products of one sequence do not rise, so the best ones are always the first drafts of their sequences.
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const Candidate& a, const Candidate& b) { return a.rate > b.rate; });
  const int base = static_cast<int>(sequences.size()) + other_rows;
  const double drafting = draft_seconds(static_cast<int>(sequences.size()));
  double expected = static_cast<double>(sequences.size());
  double best = expected / (forward_seconds(base, Lengths::even) + drafting);
  std::size_t chosen = 0;
  lengths_ = Lengths::even;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    expected += candidates_[i].rate;
    const Lengths lengths = i + 1 == candidates_.size() && even_limits ? Lengths::even : Lengths::uneven;
    const double value = expected / (forward_seconds(base + static_cast<int>(i) + 1, lengths) + drafting);
    if (value > best) {
      best = value;
      chosen = i + 1;
      lengths_ = lengths;
    }
  }
  for (std::size_t i = 0; i < chosen; ++i) ++sequences[candidates_[i].sequence].verify;
  return static_cast<int>(chosen);
}

// Whether a block for each of so many sequences brings more tokens per second than none.
bool AdaptivePolicy::drafting_pays(int sequences, int other_rows) const {
  const double n = sequences;
  const double without = n / forward_seconds(sequences + other_rows, Lengths::even);
  const int rows = sequences + other_rows + static_cast<int>(std::lround(n * block_rows_.get()));
  const double with =
      n * (1 + block_gain_.get()) / (forward_seconds(rows, lengths_) + draft_seconds(sequences));
  return with > without;
}

void AdaptivePolicy::choose(std::span<DraftView> sequences, int other_rows) {
  if (sequences.empty()) return;
  ++steps_;
  const int chosen = choose_rows(sequences, other_rows);
  bool any_draft = false;
  for (const DraftView& view : sequences) any_draft = any_draft || !view.confidences.empty();
  if (any_draft) block_rows_.add(static_cast<double>(chosen) / static_cast<double>(sequences.size()));
  const bool pays = !learned_draft_ || drafting_pays(static_cast<int>(sequences.size()), other_rows);
  if (pays) {
    probe_after_ = kProbeFirst;
    probe_at_ = steps_ + probe_after_;
  }
  // Traffic changes: without drafts nothing would ever be learned of them again.
  const bool probe = steps_ >= probe_at_;
  if (probe && steps_ + 1 >= probe_at_ + kProbeLength) {
    probe_after_ = std::min(2 * probe_after_, kProbeLast);
    probe_at_ = steps_ + probe_after_;
  }
  for (DraftView& view : sequences) view.draft_next = pays || probe;
}

void AdaptivePolicy::observe_step(int rows, int drafted, double forward, double drafting) {
  RunningMean& correction = correction_[static_cast<std::size_t>(lengths_)];
  const double predicted = forward_seconds(rows, lengths_) / correction.get();
  if (predicted > 0) correction.add(std::clamp(forward / predicted, 0.1, 10.0));
  if (drafted == 0) return;
  // A pass costs about the same for one sequence or several; what it adds for each shows as they vary.
  if (!learned_draft_) {
    draft_base_ = drafting / 2;
    draft_each_ = drafting / 2 / drafted;
    learned_draft_ = true;
    return;
  }
  const double error = drafting - draft_seconds(drafted);
  draft_base_ = std::max(0.0, draft_base_ + kSmoothing * error / 2);
  draft_each_ = std::max(0.0, draft_each_ + kSmoothing * error / 2 / drafted);
}

void AdaptivePolicy::observe_drafts(const DraftOutcome& outcome) {
  for (int j = 0; j < outcome.verified && j <= outcome.accepted; ++j) {
    calibration_.observe(outcome.confidences[j], j < outcome.accepted);
  }
  block_gain_.add(outcome.accepted);
}

}  // namespace thalweg::engine
