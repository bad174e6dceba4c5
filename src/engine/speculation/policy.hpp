// How many drafts of each sequence a step verifies, and who drafts at all. Speculation never changes a token
// (drafts are accepted exactly if the target draws them), so a policy decides about speed only.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/speculation/step_cost.hpp"

namespace thalweg::engine {

struct SpeculationOptions {
  enum class Kind {
    off,
    fixed,     ///< `length` drafts for everyone
    dynamic,   ///< the published confidence schedule
    adaptive,  ///< ours: calibrated confidences, drafter's cost counted, drafts for some or none when it does
               ///< not pay
  };
  Kind kind = Kind::off;
  int length = 0;
};

/// "off", "fixed:K" (K >= 1), "dynamic" or "adaptive". Throws UsageError.
SpeculationOptions parse_speculation(std::string_view text);
std::string speculation_name(const SpeculationOptions& options);

/// One sequence as a policy sees it. Confidences belong to drafts that exist; a decision sees only what was
/// known before the step, so no confidence of a later token decides whether an earlier one is verified.
struct DraftView {
  std::uint64_t sequence = 0;
  std::span<const float> confidences;  ///< of its drafts, each given that the ones before are accepted
  int limit = 0;                       ///< drafts that may be verified now
  // Decisions.
  int verify = 0;
  bool draft_next = false;
};

/// What became of one sequence's drafts in a step.
struct DraftOutcome {
  std::span<const float> confidences;
  int verified = 0;
  int accepted = 0;
};

/// One thread. Made once for an engine.
class SpeculationPolicy {
 public:
  virtual ~SpeculationPolicy() = default;
  /// Decides for all sequences of the next step that are at their newest token; `other_rows` are in the step
  /// besides.
  virtual void choose(std::span<DraftView> sequences, int other_rows) = 0;
  /// A step has run: rows in all, sequences that drafted after it, seconds of forward and of drafting.
  virtual void observe_step(int rows, int drafted, double forward_seconds, double draft_seconds) = 0;
  virtual void observe_drafts(const DraftOutcome& outcome) = 0;
};

/// `curve`: forward time by rows, measured on this device. `block`: drafts of one pass. Null for Kind::off.
std::unique_ptr<SpeculationPolicy> make_policy(const SpeculationOptions& options,
                                               std::vector<StepCostPoint> curve, int block);

}  // namespace thalweg::engine
