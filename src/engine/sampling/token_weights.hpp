// Probabilities as integers, so that their sums depend on no order: not on threads, not on lanes, not on the
// device.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/sampling/portable_math.hpp"

namespace thalweg::engine {

/// One, in units of a weight.
inline constexpr double weight_unit = 0x1p40;

namespace token_weights {
/// Below it a weight rounds to zero.
inline constexpr double negligible = -29;

constexpr double clamp(double x) {
  return x > negligible ? x : negligible;
}

constexpr std::uint64_t of_clamped(double x) {
  // Adding 2^52 rounds to an integer, held in the low bits.
  return std::bit_cast<std::uint64_t>(portable_exp(x) * weight_unit + 0x1p52) & 0xFFFFFFFFFFFFF;
}
}  // namespace token_weights

/// A token's probability relative to the most likely one's: 2^40 exp(x), rounded to nearest, with
/// x = (logit - largest logit) / temperature <= 0 (-inf: 0). A row's sum stays below 2^57.
constexpr std::uint64_t fixed_point_weight(double x) {
  return token_weights::of_clamped(token_weights::clamp(x));
}

/// Calls visit(index, x, weight) for every token of the row, in order; x is cut off at -29. Works in small
/// blocks, so that the compiler can compute several weights at once.
template <typename Visit>
void for_each_weight(std::span<const float> logits, float largest, double temperature, Visit visit) {
  constexpr std::size_t block = 128;
  std::array<double, block> x{};
  std::array<std::uint64_t, block> weight;
  for (std::size_t first = 0; first < logits.size(); first += block) {
    const std::size_t count = std::min(block, logits.size() - first);
    for (std::size_t j = 0; j < count; ++j) {
      x[j] = token_weights::clamp((static_cast<double>(logits[first + j]) - largest) / temperature);
    }
    for (std::size_t j = 0; j < block; ++j) weight[j] = token_weights::of_clamped(x[j]);
    for (std::size_t j = 0; j < count; ++j) visit(first + j, x[j], weight[j]);
  }
}

}  // namespace thalweg::engine
