// Manifold-constrained hyper-connections: coefficients of a sublayer, the collapse of the residual streams
// into its input and the expansion of its output (model specification, section 3.3). Cost: one product with
// 24 rows, the rest passes once over the streams.
#pragma once

#include "backend/cpu/context.hpp"
#include "backend/cpu/linear.hpp"
#include "checkpoint/weights.hpp"

namespace thalweg::backend::cpu {

/// Coefficients of one sublayer for every row: pre, post [rows, S], comb [rows, S, S] indexed [old][new].
struct MixCoefficients {
  Rows pre;
  Rows post;
  Rows comb;
};

/// Computes the coefficients from the streams h [rows, S * hidden].
void mix_coefficients(const Context& context, Linear& linear, const checkpoint::MixWeights& weights,
                      const Rows& h, Rows& products, MixCoefficients& out);

/// One row of coefficients from its logits (already scaled and shifted).
void mix_row(const float* logits, int streams, int iterations, float eps, float* pre, float* post,
             float* comb);

/// x[row] = sum_i pre_i h_i.
void collapse(const Context& context, const Rows& h, const Rows& pre, Rows& x);

/// h'_j = post_j o + sum_i comb[i][j] h_i; in place.
void expand(const Context& context, const Rows& o, const MixCoefficients& mix, Rows& h);

}  // namespace thalweg::backend::cpu
