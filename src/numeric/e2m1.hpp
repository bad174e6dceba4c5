// E2M1, the 4-bit float of the expert weights and the compressed caches: codes 0..7 are 0, .5, 1, 1.5, 2, 3,
// 4, 6, bit 3 is the sign. Two codes a byte, the even column in the low nibble.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace thalweg::numeric {

constexpr std::array<float, 16> kE2m1Values = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                               -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

inline float from_e2m1(std::uint8_t code) {
  return kE2m1Values[code & 15U];
}

/// Code of the nearest value, ties to the even code, saturating at +-6; the sign of zero is kept. NaN
/// gives 6.
inline std::uint8_t to_e2m1(float value) {
  const float m = std::fabs(value);
  const unsigned sign = (std::bit_cast<std::uint32_t>(value) >> 28) & 8U;
  const unsigned code = unsigned{m > 0.25F} + unsigned{m >= 0.75F} + unsigned{m > 1.25F} +
                        unsigned{m >= 1.75F} + unsigned{m > 2.5F} + unsigned{m >= 3.5F} +
                        unsigned{!(m <= 5.0F)};
  return static_cast<std::uint8_t>(m != m ? (sign | 7U) : (sign | code));
}

}  // namespace thalweg::numeric
