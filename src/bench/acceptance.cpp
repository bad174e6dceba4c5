#include "bench/acceptance.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/timeline.hpp"

namespace thalweg::bench {
namespace {

using Distributions = std::vector<std::vector<double>>;

/// A continuation and the target's distribution of each of its tokens.
struct Continuation {
  std::vector<std::int32_t> tokens;
  Distributions target;
};

Continuation continue_prompt(engine::Timeline& timeline, const std::vector<std::int32_t>& prompt,
                             std::int64_t tokens, double temperature, std::mt19937_64& random) {
  Continuation text;
  const auto on_logits = [&](std::int64_t, std::span<const float> logits) {
    text.target.push_back(distribution(logits, temperature));
  };
  timeline.clear();
  timeline.append(prompt, 512, false, on_logits);
  while (std::ssize(text.tokens) < tokens) {
    const std::vector<double>& p = text.target.back();
    text.tokens.push_back(std::discrete_distribution<std::int32_t>(p.begin(), p.end())(random));
    if (std::ssize(text.tokens) < tokens) timeline.append({&text.tokens.back(), 1}, 1, false, on_logits);
  }
  return text;
}

// The draft's distributions behind token `at` of the text, each given that the drafts before it are the
// text's.
Distributions drafts_behind(engine::Timeline& timeline, const Continuation& text, std::size_t at,
                            double temperature) {
  Distributions drafts;
  timeline.draft(text.tokens[at], [&](std::int32_t, int, std::span<const float> logits) {
    drafts.push_back(distribution(logits, temperature));
    return text.tokens[at + drafts.size()];
  });
  return drafts;
}

// A block survives to a draft with the product of what accepted the text's tokens before it. The text was
// drawn from the target, so each factor is divided by the target's probability.
void add_block(const Continuation& text, std::size_t first, const Distributions& drafts,
               AcceptanceFigures& figures) {
  double coupled = 1;
  double rejection = 1;
  for (std::size_t j = 0; j < drafts.size(); ++j) {
    const std::vector<double>& p = text.target[first + j];
    const std::vector<double>& q = drafts[j];
    figures.coupled[j] += coupled * coupled_acceptance(p, q);
    figures.rejection[j] += rejection * rejection_acceptance(p, q);
    const auto token = static_cast<std::size_t>(text.tokens[first + j]);
    coupled *= coupled_probability(p, q, token) / p[token];
    rejection *= std::min(1.0, q[token] / p[token]);
  }
  ++figures.blocks;
}

}  // namespace

double coupled_probability(std::span<const double> p, std::span<const double> q, std::size_t token) {
  if (p[token] <= 0 || q[token] <= 0) return 0;
  double sum = 0;
  for (std::size_t j = 0; j < p.size(); ++j) sum += std::max(p[j] / p[token], q[j] / q[token]);
  return 1 / sum;
}

double coupled_acceptance(std::span<const double> p, std::span<const double> q) {
  constexpr double kNothing = 1e-6;  // tokens that add less than this many times their number
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (std::min(p[i], q[i]) > kNothing) sum += coupled_probability(p, q, i);
  }
  return sum;
}

double rejection_acceptance(std::span<const double> p, std::span<const double> q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += std::min(p[i], q[i]);
  return sum;
}

std::vector<double> distribution(std::span<const float> logits, double temperature) {
  std::vector<double> p(logits.size(), 0);
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) {
    p[static_cast<std::size_t>(largest - logits.begin())] = 1;
    return p;
  }
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    sum += p[i] = std::exp((static_cast<double>(logits[i]) - *largest) / temperature);
  }
  for (double& x : p) x /= sum;
  return p;
}

AcceptanceFigures measure_acceptance(backend::Backend& backend,
                                     std::span<const std::vector<std::int32_t>> prompts, std::int64_t tokens,
                                     double temperature) {
  const auto block = static_cast<std::size_t>(backend.model().config().draft.block_size);
  AcceptanceFigures figures{0, std::vector<double>(block), std::vector<double>(block)};
  std::mt19937_64 random(1);
  engine::Timeline timeline(backend);
  for (const std::vector<std::int32_t>& prompt : prompts) {
    const Continuation text =
        continue_prompt(timeline, prompt, tokens + static_cast<std::int64_t>(block), temperature, random);
    timeline.clear();
    timeline.append(prompt, 512, false, [](std::int64_t, std::span<const float>) {});
    for (std::size_t at = 0; at < static_cast<std::size_t>(tokens); ++at) {
      if (at > 0) {
        timeline.append({&text.tokens[at - 1], 1}, 1, false, [](std::int64_t, std::span<const float>) {});
      }
      add_block(text, at + 1, drafts_behind(timeline, text, at, temperature), figures);
    }
  }
  for (double& x : figures.coupled) x /= static_cast<double>(figures.blocks);
  for (double& x : figures.rejection) x /= static_cast<double>(figures.blocks);
  return figures;
}

}  // namespace thalweg::bench
