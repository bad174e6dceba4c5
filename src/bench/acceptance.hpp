// How many drafts are accepted, by two ways of verifying: the shared noise of this engine, and classical
// rejection sampling. Both probabilities are computed from the two models' distributions; nothing is counted.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.hpp"

namespace thalweg::bench {

/// Probability that the largest of log p + noise and the largest of log q + the same Gumbel noise are the
/// same token, `token` alone or any. With x_j = -log of the uniform draws, token i is both if x_j / x_i >
/// max(p_j / p_i, q_j / q_i) for every j, so its probability is 1 / sum_j max(p_j / p_i, q_j / q_i).
double coupled_probability(std::span<const double> p, std::span<const double> q, std::size_t token);
double coupled_acceptance(std::span<const double> p, std::span<const double> q);

/// Acceptance of rejection sampling with drafts from q: sum_i min(p_i, q_i).
double rejection_acceptance(std::span<const double> p, std::span<const double> q);

/// Softmax of logits / temperature; all mass on the largest (the lowest of equals) at 0.
std::vector<double> distribution(std::span<const float> logits, double temperature);

/// By position in the block: the share of blocks whose drafts up to this one are all accepted.
struct AcceptanceFigures {
  std::int64_t blocks = 0;
  std::vector<double> coupled;
  std::vector<double> rejection;
};

/// Continues each prompt by `tokens` tokens drawn from the model, and drafts a block at each of them.
/// `backend` has room for the longest prompt, the tokens and two blocks, and a draft model. Positions must
/// not be fewer than a block.
AcceptanceFigures measure_acceptance(backend::Backend& backend,
                                     std::span<const std::vector<std::int32_t>> prompts, std::int64_t tokens,
                                     double temperature);

}  // namespace thalweg::bench
