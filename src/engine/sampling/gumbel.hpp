// The noise that turns argmax into sampling: Gumbel variates that depend on seed, position and token alone.
//
// argmax over t of (log weight of t + noise of t) is distributed as the weights; see
// docs/decisions/gumbel-noise-by-position.md for why sampling is done that way.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/sampling/philox.hpp"
#include "engine/sampling/portable_math.hpp"

namespace thalweg::engine {

/// Random words of tokens 4 * group .. 4 * group + 3 at `position`. Counter: (group, stream 0, position).
constexpr PhiloxCounter noise_words(std::uint64_t seed, std::int64_t position, std::uint32_t group) {
  const auto p = static_cast<std::uint64_t>(position);
  return philox4x32({group, 0, static_cast<std::uint32_t>(p), static_cast<std::uint32_t>(p >> 32)},
                    philox_key(seed));
}

/// -log(-log u) with u = (word + 1/2) 2^-32: between -3.14 and 22.88. Relative error of -log u below 1e-15.
constexpr double gumbel_of_word(std::uint32_t word) {
  const double u = (static_cast<double>(word) + 0.5) * 0x1p-32;  // exact
  return -portable_log(-portable_log(u));
}

/// A bound no smaller than gumbel_of_word(word), without a logarithm: -log u >= 1 - u >= 2^-(1 + z), where z
/// counts the leading zeros of the inverted word. Rounded up by four units in a million, more than the error
/// of the noise.
constexpr double gumbel_bound(std::uint32_t word) {
  return (1 + std::countl_zero(~word)) * 0.69315;
}

/// No noise is larger.
inline constexpr double max_gumbel = 33 * 0.69315;

/// Noise of one token.
constexpr double gumbel_noise(std::uint64_t seed, std::int64_t position, std::int32_t token) {
  const auto t = static_cast<std::uint32_t>(token);
  return gumbel_of_word(noise_words(seed, position, t / 4)[t % 4]);
}

}  // namespace thalweg::engine
