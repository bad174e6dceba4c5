// Limits of the selection kernel, and how it samples.
#pragma once

#include "backend/cuda/operand.hpp"

namespace thalweg::cuda {

constexpr int max_selection_scores = 1 << 20;
constexpr int max_selection = 2048;

/// Throws UsageError unless rows of `stride` scores (a multiple of 8) and `k` are within the limits.
void check_selection(int stride, int k);

/// Rank in a sample of every `step`-th chunk at which to put the threshold: with every chunk sampled the k-th
/// itself, else far enough below the k-th largest that hardly any row has fewer than k above it.
THALWEG_HOST_DEVICE constexpr int sample_rank(int k, int step) {
  if (step == 1) return k;
  const int expected = (k + step - 1) / step;
  return expected + expected / 2 + 24;
}

}  // namespace thalweg::cuda
