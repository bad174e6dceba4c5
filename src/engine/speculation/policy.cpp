#include "engine/speculation/policy.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "engine/speculation/adaptive_policy.hpp"
#include "engine/speculation/verify_schedule.hpp"

namespace thalweg::engine {
namespace {

class FixedPolicy final : public SpeculationPolicy {
 public:
  explicit FixedPolicy(int length) : length_(length) {}
  void choose(std::span<DraftView> sequences, int) override {
    for (DraftView& view : sequences) {
      view.verify = std::min({length_, view.limit, static_cast<int>(view.confidences.size())});
      view.draft_next = true;
    }
  }
  void observe_step(int, int, double, double) override {}
  void observe_drafts(const DraftOutcome&) override {}

 private:
  int length_;
};

// The published schedule. Without asynchronous steps the newest rates serve for both of its decisions.
class DynamicPolicy final : public SpeculationPolicy {
 public:
  explicit DynamicPolicy(std::vector<StepCostPoint> curve) : cost_(std::move(curve)) {}

  void choose(std::span<DraftView> sequences, int) override {
    estimates_.clear();
    for (const DraftView& view : sequences) {
      DraftEstimates estimate;
      estimate.drafts = std::min(view.limit, static_cast<int>(view.confidences.size()));
      float product = 1;
      for (int j = 0; j < estimate.drafts; ++j) estimate.rates.push_back(product *= view.confidences[j]);
      estimate.previous_rates = estimate.rates;
      estimate.has_proposals = estimate.drafts > 0;
      estimates_.push_back(std::move(estimate));
    }
    const bool fits =
        !cost_.curve().empty() && static_cast<int>(sequences.size()) <= cost_.curve().back().rows;
    const VerifyPlan plan = fits ? plan_verification(cost_, estimates_) : VerifyPlan{};
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      sequences[i].verify = fits ? plan.rows[i] - 1 : 0;
      sequences[i].draft_next = true;
    }
  }
  void observe_step(int, int, double, double) override {}
  void observe_drafts(const DraftOutcome&) override {}

 private:
  StepCost cost_;
  std::vector<DraftEstimates> estimates_;
};

}  // namespace

SpeculationOptions parse_speculation(std::string_view text) {
  using Kind = SpeculationOptions::Kind;
  if (text == "off") return {};
  if (text == "dynamic") return {Kind::dynamic, 0};
  if (text == "adaptive") return {Kind::adaptive, 0};
  int length = 0;
  if (text.starts_with("fixed:")) {
    const auto [end, error] = std::from_chars(text.data() + 6, text.data() + text.size(), length);
    if (error == std::errc{} && end == text.data() + text.size() && length >= 1) return {Kind::fixed, length};
  }
  throw UsageError("--speculate: expected off, fixed:K (K >= 1), dynamic or adaptive, found " +
                   std::string(text));
}

std::string speculation_name(const SpeculationOptions& options) {
  using Kind = SpeculationOptions::Kind;
  switch (options.kind) {
    case Kind::off:
      return "off";
    case Kind::fixed:
      return "fixed:" + std::to_string(options.length);
    case Kind::dynamic:
      return "dynamic";
    case Kind::adaptive:
      return "adaptive";
  }
  return "";
}

std::unique_ptr<SpeculationPolicy> make_policy(const SpeculationOptions& options,
                                               std::vector<StepCostPoint> curve, int block) {
  using Kind = SpeculationOptions::Kind;
  switch (options.kind) {
    case Kind::off:
      return nullptr;
    case Kind::fixed:
      return std::make_unique<FixedPolicy>(options.length);
    case Kind::dynamic:
      return std::make_unique<DynamicPolicy>(std::move(curve));
    case Kind::adaptive:
      return std::make_unique<AdaptivePolicy>(std::move(curve), block);
  }
  return nullptr;
}

}  // namespace thalweg::engine
