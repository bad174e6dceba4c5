// Policies on a simulated rank: step times implied by the published table of fixed and dynamic throughput,
// and requests of different quality. Source: engine specification, section 4.8.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/speculation/policy.hpp"

namespace thalweg::engine {
namespace {

constexpr int kDrafts = 5;

struct Load {
  int requests;
  double fixed;    ///< published tokens/s of a rank, five drafts for everyone
  double dynamic;  ///< and with lengths by confidence
};
constexpr Load kPublished[] = {{16, 4891, 4816},   {32, 8964, 9111},   {48, 12032, 12467},
                               {60, 13730, 14466}, {72, 14962, 15961}, {96, 16817, 18660}};

// What the table does not say, chosen as the specification found it to fit.
constexpr double kMeanLogit = 2.3;
constexpr double kRequestSpread = 2.2;
constexpr double kDraftSpread = 0.5;
constexpr double kTokensAStep = 4.2;                  ///< at full length
constexpr double kVariableMs = 0.032 * kTokensAStep;  ///< what lengths of their own cost a step

// Milliseconds of a step: linear between the published points, and as at the ends beyond them.
double step_ms(int rows) {
  const auto time = [](const Load& load) { return load.requests / load.fixed * 1000 * kTokensAStep; };
  std::size_t i = 1;
  while (i + 1 < std::size(kPublished) && rows > 6 * kPublished[i].requests) ++i;
  const double low = 6.0 * kPublished[i - 1].requests;
  const double high = 6.0 * kPublished[i].requests;
  const double slope = (time(kPublished[i]) - time(kPublished[i - 1])) / (high - low);
  return time(kPublished[i - 1]) + slope * (rows - low);
}

int bucket(int rows) {
  return (rows + 7) / 8 * 8;
}

// A step is padded to a multiple of eight rows, and the curve has the beginning and the end of each size.
std::vector<StepCostPoint> curve() {
  std::vector<StepCostPoint> points;
  for (int rows = 8; rows <= 6 * 96; rows += 8) {
    points.push_back({rows - 7, step_ms(rows)});
    points.push_back({rows, step_ms(rows)});
  }
  return points;
}

/// Requests that come and go; confidences are right, or off by `bias` in the logit.
class SimulatedRank {
 public:
  SimulatedRank(int requests, double bias, std::uint64_t seed)
      : bias_(bias), random_(seed), quality_(requests), left_(requests, 0) {}

  /// Expected tokens a second of a policy (null: none drafted) over so many steps.
  double throughput(SpeculationPolicy& policy, int steps) {
    double tokens = 0;
    double ms = 0;
    for (int step = -steps / 2; step < steps; ++step) {  // a third of them to learn
      const double before = tokens;
      const double taken = one_step(policy, tokens);
      if (step < 0) {
        tokens = before;
      } else {
        ms += taken;
      }
    }
    return tokens / ms * 1000;
  }

 private:
  double normal() { return normal_(random_); }

  double one_step(SpeculationPolicy& policy, double& tokens) {
    const std::size_t n = quality_.size();
    std::vector<std::array<float, kDrafts>> rates(n);
    std::vector<std::array<float, kDrafts>> claims(n);
    std::vector<DraftView> views(n);
    for (std::size_t r = 0; r < n; ++r) {
      if (left_[r]-- == 0) {
        quality_[r] = normal();
        left_[r] = 5 + static_cast<int>(random_() % 20);
        drafted_[r] = true;
      }
      for (int j = 0; j < kDrafts; ++j) {
        const double logit = kMeanLogit + kRequestSpread * quality_[r] + kDraftSpread * normal();
        rates[r][j] = static_cast<float>(1 / (1 + std::exp(-logit)));
        claims[r][j] = static_cast<float>(1 / (1 + std::exp(-(logit + bias_))));
      }
      views[r].sequence = r;
      views[r].limit = kDrafts;
      if (drafted_[r]) views[r].confidences = claims[r];
    }
    policy.choose(views, 0);
    int rows = 0;
    bool same = true;
    for (const DraftView& view : views) {
      rows += 1 + view.verify;
      same = same && view.verify == views[0].verify;
    }
    const double ms = step_ms(bucket(rows)) + (same ? 0 : kVariableMs);
    int drafted = 0;
    for (std::size_t r = 0; r < n; ++r) {
      double product = 1;
      tokens += 1;
      int accepted = 0;
      bool right = true;
      for (int j = 0; j < kDrafts; ++j) {  // the same draws for every policy
        right = uniform_(random_) < rates[r][j] && right;
        if (j >= views[r].verify) continue;
        tokens += product *= rates[r][j];
        accepted += right ? 1 : 0;
      }
      if (!views[r].confidences.empty()) policy.observe_drafts({claims[r], views[r].verify, accepted});
      drafted_[r] = views[r].draft_next;
      drafted += views[r].draft_next ? 1 : 0;
    }
    policy.observe_step(rows, drafted, ms / 1000, 0);
    return ms;
  }

  double bias_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  std::vector<double> quality_;
  std::vector<int> left_;
  std::vector<char> drafted_ = std::vector<char>(quality_.size(), 1);
};

double throughput(const std::string& policy, int requests, double bias = 0) {
  const auto made = make_policy(parse_speculation(policy), curve(), kDrafts);
  return SimulatedRank(requests, bias, 1).throughput(*made, 60'000 / requests);
}

TEST(SpeculationSimulation, DynamicOverFixedFollowsThePublishedTable) {
  for (const Load& load : kPublished) {
    const double ratio = throughput("dynamic", load.requests) / throughput("fixed:5", load.requests);
    EXPECT_NEAR(ratio / (load.dynamic / load.fixed), 1, 0.02) << load.requests << " requests";
  }
}

// What learning may cost.
constexpr double kNoise = 0.001;

TEST(SpeculationSimulation, AdaptiveIsAtOrAboveTheBestOfTheOthersAtEveryLoad) {
  for (const Load& load : kPublished) {
    const double best = std::max(throughput("fixed:5", load.requests), throughput("dynamic", load.requests));
    EXPECT_GT(throughput("adaptive", load.requests) / best, 1 - kNoise) << load.requests << " requests";
  }
}

TEST(SpeculationSimulation, ConfidencesThatAreOffCostAdaptiveNothingAndDynamicMuch) {
  for (const double bias : {-1.5, 1.5}) {
    for (const int requests : {16, 96}) {
      const double right = throughput("adaptive", requests);
      EXPECT_GT(throughput("adaptive", requests, bias) / right, 1 - 0.005) << requests << ", bias " << bias;
    }
  }
  EXPECT_LT(throughput("dynamic", 96, -1.5) / throughput("dynamic", 96), 0.97);
}

}  // namespace
}  // namespace thalweg::engine
