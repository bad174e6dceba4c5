#include "engine/sampling/filters.hpp"

#include <algorithm>
#include <numeric>

#include "engine/sampling/portable_math.hpp"
#include "engine/sampling/token_weights.hpp"

namespace thalweg::engine {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr double bins_per_unit = 32;  // of logit / temperature

FilterCut stricter(FilterCut a, FilterCut b) {
  if (a.logit != b.logit) return a.logit > b.logit ? a : b;
  return a.token < b.token ? a : b;
}

}  // namespace

/// Histogram selection: tokens are counted (and weighed) in bins by their distance from the largest logit;
/// bins are in the order of the tokens, so only the bin in which a cut falls has to be looked at token by
/// token.
class CutFinder {
 public:
  CutFinder(std::span<const float> logits, float max_logit, const Filters& filters, FilterScratch& scratch)
      : logits_(logits), max_(max_logit), filters_(filters), scratch_(scratch) {}

  FilterCut find() {
    FilterCut cut;
    if (filters_.top_k > 0 && static_cast<std::size_t>(filters_.top_k) < logits_.size()) cut = cut_top_k();
    if (filters_.top_p < 1) cut = cut_top_p(cut);
    if (filters_.min_p > 0) cut = stricter(cut, cut_min_p());
    return cut;
  }

 private:
  using Member = FilterScratch::Member;
  static constexpr std::size_t bins = FilterScratch::bins;

  static bool before(const Member& a, const Member& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  }
  double scaled(float logit) const { return (static_cast<double>(logit) - max_) / filters_.temperature; }
  static std::size_t bin_of(double x) {
    return static_cast<std::size_t>(std::min(-x * bins_per_unit, static_cast<double>(bins - 1)));
  }

  /// The tokens of `bin` that `cut` keeps, in order of id.
  std::vector<Member>& gather(std::size_t bin, FilterCut cut) {
    scratch_.members_.clear();
    for (std::size_t i = 0; i < logits_.size(); ++i) {
      const auto token = static_cast<std::int32_t>(i);
      if (logits_[i] == -infinity || !cut.keeps(logits_[i], token) || bin_of(scaled(logits_[i])) != bin)
        continue;
      scratch_.members_.push_back({logits_[i], token});
    }
    return scratch_.members_;
  }

  FilterCut cut_top_k() {
    auto& counts = scratch_.counts_;
    counts.fill(0);
    for (const float logit : logits_) {
      if (logit != -infinity) ++counts[bin_of(scaled(logit))];
    }
    auto wanted = static_cast<std::size_t>(filters_.top_k);
    std::size_t bin = 0;
    while (bin < bins && counts[bin] < wanted) wanted -= counts[bin++];
    if (bin == bins) return {};
    auto& members = gather(bin, {});
    const auto last = members.begin() + static_cast<std::ptrdiff_t>(wanted - 1);
    std::nth_element(members.begin(), last, members.end(), before);
    return {last->logit, last->token};
  }

  /// Top-p among the tokens that `cut` keeps.
  FilterCut cut_top_p(FilterCut cut) {
    auto& masses = scratch_.masses_;
    masses.fill(0);
    for_each_weight(logits_, max_, filters_.temperature, [&](std::size_t i, double x, std::uint64_t weight) {
      if (cut.keeps(logits_[i], static_cast<std::int32_t>(i))) masses[bin_of(x)] += weight;
    });
    const std::uint64_t total = std::accumulate(masses.begin(), masses.end(), std::uint64_t{0});
    const auto allowed = static_cast<std::uint64_t>(filters_.top_p * static_cast<double>(total));
    std::uint64_t mass = 0;
    std::size_t bin = 0;
    while (bin < bins && mass + masses[bin] <= allowed) mass += masses[bin++];
    if (bin == bins) return cut;
    const auto& last = last_within(gather(bin, cut), mass, allowed);
    return {last.logit, last.token};
  }

  /// The last member, in order, before which the mass is at most `allowed`; `mass` stands before the first.
  /// Halves the members by selection instead of sorting them: linear.
  const Member& last_within(std::vector<Member>& members, std::uint64_t mass, std::uint64_t allowed) const {
    auto first = members.begin();
    auto end = members.end();
    while (end - first > 1) {
      const auto middle = first + (end - first) / 2;
      std::nth_element(first, middle, end, before);
      std::uint64_t half = 0;
      for (auto member = first; member != middle; ++member) half += fixed_point_weight(scaled(member->logit));
      if (mass + half > allowed) {
        end = middle;
      } else {
        mass += half;
        first = middle;
      }
    }
    return *first;
  }

  FilterCut cut_min_p() const {
    const double least = portable_log(filters_.min_p);
    FilterCut cut{max_};
    for (const float logit : logits_) {
      if (logit < cut.logit && scaled(logit) >= least) cut.logit = logit;
    }
    return cut;
  }

  std::span<const float> logits_;
  float max_;
  const Filters& filters_;
  FilterScratch& scratch_;
};

FilterCut find_cut(std::span<const float> logits, float max_logit, const Filters& filters,
                   FilterScratch& scratch) {
  return CutFinder(logits, max_logit, filters, scratch).find();
}

}  // namespace thalweg::engine
