// exp and log that give the same bits on every processor and device: IEEE double additions, subtractions,
// multiplications and one division, each rounded to nearest, in the order written and never fused
// (-ffp-contract=off; in CUDA -fmad=false or the __dadd_rn family).
#pragma once

#include <bit>
#include <cstdint>

namespace thalweg::engine {

namespace portable_math {
inline constexpr double ln2_high = 0x1.62e42fefa0000p-1;  // 37 leading bits: exact times any exponent
inline constexpr double ln2_low = 0x1.cf79abc9e3b3ap-40;  // ln 2 - ln2_high
inline constexpr double log2_e = 0x1.71547652b82fep+0;
}  // namespace portable_math

/// Natural logarithm of a finite, normal x > 0. Relative error below 1e-15, also next to 1 (x - 1 is exact
/// there). x = m 2^e with m in [sqrt(1/2), sqrt(2)), s = (m - 1) / (m + 1), log m = 2 (s + s^3/3 + ... +
/// s^21/21); |s| < 0.172 makes the rest smaller than 1e-18 s.
constexpr double portable_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  // Subtracting the bits of sqrt(1/2) turns "mantissa below sqrt(1/2)" into a borrow from the exponent.
  constexpr std::uint64_t sqrt_half = 0x3FE6A09E667F3BCD;
  const auto exponent = static_cast<std::int64_t>(bits - sqrt_half) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << 52));
  const double e = static_cast<double>(exponent);
  const double s = (m - 1.0) / (m + 1.0);
  const double q = s * s;
  double series = 1.0 / 21;
  for (int odd = 19; odd >= 3; odd -= 2) series = series * q + 1.0 / odd;
  const double log_m = 2.0 * s + (2.0 * s) * (q * series);
  return e * portable_math::ln2_high + (log_m + e * portable_math::ln2_low);
}

/// e^x for x in [-700, 700]. Relative error below 1e-14: x = n ln 2 + r with |r| <= 0.347, and the Taylor
/// polynomial of degree 11 in r, whose rest is smaller than 7e-15.
constexpr double portable_exp(double x) {
  constexpr double shifter = 0x1.8p52;  // adding it rounds to an integer, held in the low bits
  const double shifted = x * portable_math::log2_e + shifter;
  const double n = shifted - shifter;
  const double r = (x - n * portable_math::ln2_high) - n * portable_math::ln2_low;
  double p = 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  // The low bits of `shifted` hold n; moved into the exponent they scale by 2^n.
  const std::uint64_t scale = (std::bit_cast<std::uint64_t>(shifted) + 1023) << 52;
  return p * std::bit_cast<double>(scale);
}

}  // namespace thalweg::engine
