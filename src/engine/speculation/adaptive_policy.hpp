// Our schedule. It differs from the published one in four points: confidences are calibrated against what
// really was accepted; the drafter's own time counts; a sequence whose drafts do not pay stops drafting and
// tries again now and then; and the cost of rows follows the steps that ran.
#pragma once

#include <array>
#include <unordered_map>
#include <vector>

#include "engine/speculation/policy.hpp"

namespace thalweg::engine {

/// Acceptance of drafts by their confidence: in every bin a running mean of how far acceptance lies above the
/// confidence, starting from nothing.
class ConfidenceCalibration {
 public:
  float rate(float confidence) const;
  void observe(float confidence, bool accepted);

 private:
  static constexpr std::size_t kBins = 16;
  static constexpr double kPrior = 4;     // observations that the confidence itself counts for
  static constexpr double kMemory = 500;  // observations after which old ones have faded
  // Between the middles of the bins observations are shared and errors interpolated: rates must order drafts
  // as finely as confidences do.
  struct Place {
    std::size_t low;
    std::size_t high;
    double share;  // of `high`
  };
  static Place place_of(float confidence);
  std::array<double, kBins> seen_{};
  std::array<double, kBins> excess_{};
};

/// The mean of the first values, then one in which old values fade; `start` counts as one value.
class RunningMean {
 public:
  explicit RunningMean(double start) : mean_(start) {}
  void add(double value);
  double get() const { return mean_; }

 private:
  double mean_;
  double seen_ = 1;
};

class AdaptivePolicy final : public SpeculationPolicy {
 public:
  AdaptivePolicy(std::vector<StepCostPoint> curve, int block);
  void choose(std::span<DraftView> sequences, int other_rows) override;
  void observe_step(int rows, int drafted, double forward_seconds, double draft_seconds) override;
  void observe_drafts(const DraftOutcome& outcome) override;

  /// Whether all sequences of a step have the same number of drafts. What lengths of their own cost a device
  /// is not in the curve and shows in the steps alone, so each kind has its correction.
  enum class Lengths { even, uneven };

  /// Seconds of a step of so many rows, as measured at start and corrected since.
  double forward_seconds(int rows, Lengths lengths) const;
  /// Seconds of drafting for so many sequences.
  double draft_seconds(int sequences) const { return draft_base_ + draft_each_ * sequences; }

 private:
  struct Candidate {
    double rate;
    std::uint32_t sequence;
  };
  int choose_rows(std::span<DraftView> sequences, int other_rows);
  bool drafting_pays(int sequences, int other_rows) const;

  std::vector<StepCostPoint> curve_;
  int block_;
  std::array<RunningMean, 2> correction_{RunningMean(1), RunningMean(1)};  // measured over predicted time
  Lengths lengths_ = Lengths::even;                                        // of the newest step
  double draft_base_ = 0;
  double draft_each_ = 0;
  RunningMean block_gain_;  // accepted tokens of a drafted block
  RunningMean block_rows_;  // drafts verified of a drafted block
  bool learned_draft_ = false;
  std::int64_t steps_ = 0;
  std::int64_t probe_at_ = 0;
  std::int64_t probe_after_ = 0;
  ConfidenceCalibration calibration_;
  std::vector<Candidate> candidates_;
};

}  // namespace thalweg::engine
