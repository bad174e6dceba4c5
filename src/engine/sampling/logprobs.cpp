#include "engine/sampling/logprobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "engine/sampling/portable_math.hpp"
#include "engine/sampling/row_scan.hpp"
#include "engine/sampling/token_weights.hpp"

namespace thalweg::engine {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

bool before(const TokenLogprob& a, const TokenLogprob& b) {
  return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
}

/// The `n` first tokens in the order of logits, ids rising among equals; `logprob` holds the logit.
void find_top(std::span<const float> logits, FilterCut cut, std::size_t n, std::vector<TokenLogprob>& top) {
  top.clear();
  if (n == 0) return;
  float worst = -infinity;  // of a full heap, which is ordered so that its first element is the last token
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto token = static_cast<std::int32_t>(i);
    // Ids rise, so a token equal to the last of a full heap comes after it.
    if (top.size() == n && logits[i] <= worst) continue;
    if (logits[i] == -infinity || !cut.keeps(logits[i], token)) continue;
    if (top.size() == n) {
      std::pop_heap(top.begin(), top.end(), before);
      top.pop_back();
    }
    top.push_back({token, logits[i]});
    std::push_heap(top.begin(), top.end(), before);
    worst = top.front().logprob;
  }
  std::sort_heap(top.begin(), top.end(), before);
}

/// Softmax of logits / temperature over the kept tokens.
void compute(std::span<const float> logits, float max_logit, double temperature, FilterCut cut,
             std::int32_t chosen, std::int32_t top_n, RowLogprobs& out) {
  const auto scaled = [&](float logit) { return (static_cast<double>(logit) - max_logit) / temperature; };
  std::uint64_t mass = 0;
  for_each_weight(logits, max_logit, temperature, [&](std::size_t i, double, std::uint64_t weight) {
    if (cut.keeps(logits[i], static_cast<std::int32_t>(i))) mass += weight;
  });
  const double log_mass = portable_log(static_cast<double>(mass) / weight_unit);
  out.chosen = static_cast<float>(scaled(logits[static_cast<std::size_t>(chosen)]) - log_mass);
  find_top(logits, cut, static_cast<std::size_t>(top_n), out.top);
  for (TokenLogprob& entry : out.top) entry.logprob = static_cast<float>(scaled(entry.logprob) - log_mass);
}

}  // namespace

void raw_logprobs(std::span<const float> logits, std::int32_t chosen, std::int32_t top_n, RowLogprobs& out) {
  if (chosen < 0 || static_cast<std::size_t>(chosen) >= logits.size()) {
    throw InputError("logprobs", fmt::format("a token id in 0..{}", logits.size() - 1),
                     fmt::format("{}", chosen));
  }
  const LargestLogit largest = find_largest(logits);
  if (largest.logit == -infinity) throw WorkError("logits: expected a finite number, found only -inf");
  compute(logits, largest.logit, 1, {}, chosen, top_n, out);
}

void filtered_logprobs(std::span<const float> logits, float max_logit, double temperature, FilterCut cut,
                       std::int32_t chosen, std::int32_t top_n, RowLogprobs& out) {
  compute(logits, max_logit, temperature, cut, chosen, top_n, out);
}

}  // namespace thalweg::engine
