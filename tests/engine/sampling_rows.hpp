// Random rows for the sampler's tests, the same on every platform.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace thalweg::engine::testing {

/// Uniform in [0, 1) from the generator's raw bits (the standard's distributions differ between libraries).
inline double uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

inline std::size_t below(std::mt19937_64& random, std::size_t limit) {
  return random() % limit;
}

/// Roughly normal logits of standard deviation `spread`.
inline std::vector<float> random_row(std::mt19937_64& random, std::size_t size, double spread) {
  std::vector<float> row(size);
  for (float& logit : row) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform(random);
    logit = static_cast<float>(sum * spread);
  }
  return row;
}

/// Logits on a grid, so that many are equal.
inline std::vector<float> row_with_ties(std::mt19937_64& random, std::size_t size, double spread) {
  std::vector<float> row = random_row(random, size, spread);
  for (float& logit : row) logit = std::round(logit * 2) / 2;
  return row;
}

}  // namespace thalweg::engine::testing
