#include "engine/speculation/verify_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace thalweg::engine {
namespace {

/// One draft's claim to a row.
struct Claim {
  float rate;
  std::size_t sequence;
};

std::vector<Claim> sorted(std::vector<Claim> claims) {
  std::sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
    return a.rate != b.rate ? a.rate > b.rate : a.sequence < b.sequence;
  });
  return claims;
}

void check(const DraftEstimates& s, std::size_t index) {
  const auto fail = [&](const char* field, const std::string& expected, auto found) {
    throw InputError(fmt::format("sequence {}: {}", index, field), expected, fmt::format("{}", found));
  };
  if (s.drafts < 0) fail("drafts", "at least 0", s.drafts);
  if (s.processed > s.scheduled)
    fail("processed", fmt::format("at most {} scheduled", s.scheduled), s.processed);
  const auto fits = [&](const std::vector<float>& rates) {
    return rates.empty() || rates.size() == static_cast<std::size_t>(s.drafts);
  };
  if (!fits(s.rates)) fail("rates", fmt::format("{} or none", s.drafts), s.rates.size());
  if (!fits(s.previous_rates))
    fail("previous_rates", fmt::format("{} or none", s.drafts), s.previous_rates.size());
}

void add_claims(const DraftEstimates& s, const std::vector<float>& rates, std::size_t index,
                std::vector<Claim>& claims) {
  const bool in_flight = s.scheduled > s.processed;
  const float unknown = in_flight || s.has_proposals ? 1 : 0;
  for (int j = 0; j < s.drafts; ++j) {
    claims.push_back({rates.empty() ? unknown : rates[static_cast<std::size_t>(j)], index});
  }
}

/// Rows of the step: every total from one row a sequence to all drafts is tried, since the cost has steps and
/// cliffs.
int best_total(const StepCost& cost, std::size_t sequences, const std::vector<Claim>& claims) {
  const double slope = std::max(cost.slope(), 0.0);
  const double sampler = cost.sampler(static_cast<int>(sequences)).ms;
  auto point = cost.curve().begin();
  double best_value = 0;
  int best = 0;
  auto expected = static_cast<float>(sequences);
  for (std::size_t extra = 0; extra <= claims.size(); ++extra) {
    const int rows = static_cast<int>(sequences + extra);
    while (point != cost.curve().end() && point->rows < rows) ++point;
    if (point == cost.curve().end()) break;
    const double value = static_cast<double>(expected) / (point->ms + slope * point->rows + sampler);
    if (value > best_value) {
      best_value = value;
      best = rows;
    }
    if (extra < claims.size()) expected += claims[extra].rate;
  }
  if (best == 0) {
    throw InputError("curve", fmt::format("a step size of at least {} rows", sequences),
                     fmt::format("{} at most", cost.curve().back().rows));
  }
  return best;
}

}  // namespace

VerifyPlan plan_verification(const StepCost& cost, std::span<const DraftEstimates> sequences) {
  std::vector<Claim> capacity;
  std::vector<Claim> allocation;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const DraftEstimates& s = sequences[i];
    check(s, i);
    const bool paired = s.scheduled == s.processed;
    add_claims(s, paired ? s.previous_rates : s.rates, i, capacity);
    add_claims(s, s.rates, i, allocation);
  }
  std::size_t extra = allocation.size();
  if (!cost.curve().empty() && !sequences.empty()) {
    extra = static_cast<std::size_t>(best_total(cost, sequences.size(), sorted(std::move(capacity)))) -
            sequences.size();
  }
  allocation = sorted(std::move(allocation));
  VerifyPlan plan{std::vector<int>(sequences.size(), 1), static_cast<int>(sequences.size() + extra)};
  for (std::size_t i = 0; i < extra; ++i) ++plan.rows[allocation[i].sequence];
  return plan;
}

std::vector<int> distribute_rows(int total_rows, int drafts, std::span<const int> row_of,
                                 std::span<const float> confidences) {
  if (drafts < 1) throw InputError("drafts", "at least 1", fmt::format("{}", drafts));
  const auto width = static_cast<std::size_t>(drafts);
  const std::size_t count = row_of.size();
  const auto total = static_cast<std::int64_t>(total_rows);
  if (total < static_cast<std::int64_t>(count) || total > static_cast<std::int64_t>(count * (width + 1))) {
    throw InputError("total rows", fmt::format("{}..{}", count, count * (width + 1)),
                     fmt::format("{}", total_rows));
  }
  std::vector<float> products(count * width, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (row_of[i] == -1) continue;
    const std::size_t rows = confidences.size() / width;
    if (row_of[i] < 0 || static_cast<std::size_t>(row_of[i]) >= rows) {
      throw InputError(fmt::format("row of sequence {}", i),
                       fmt::format("-1..{}", static_cast<std::int64_t>(rows) - 1),
                       fmt::format("{}", row_of[i]));
    }
    const auto row = confidences.subspan(static_cast<std::size_t>(row_of[i]) * width, width);
    std::partial_sum(row.begin(), row.end(), products.begin() + static_cast<std::ptrdiff_t>(i * width),
                     [](float product, float confidence) { return product * confidence; });
  }
  std::vector<std::size_t> order(products.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return products[a] > products[b]; });
  order.resize(static_cast<std::size_t>(total_rows) - count);
  std::vector<int> rows(count, 1);
  for (const std::size_t flat : order) ++rows[flat / width];
  return rows;
}

}  // namespace thalweg::engine
