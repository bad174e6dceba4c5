// The two 8-bit formats of the checkpoint: E4M3 values (the "fn" variant: no infinities, NaN at 0x7F and
// 0xFF, largest 448) and UE8M0 scales (a power of two; NaN at 255). Source: checkpoint specification,
// section 4.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace thalweg::numeric {

constexpr float kE4m3Max = 448.0F;

inline float from_e4m3(std::uint8_t code) {
  const std::uint32_t sign = std::uint32_t{code & 0x80U} << 24;
  const std::uint32_t magnitude = code & 0x7fU;
  if (magnitude == 0x7fU) return std::numeric_limits<float>::quiet_NaN();
  // Read as a float with a bias 120 too small: one exact multiplication serves normals and subnormals alike.
  const float tiny = std::bit_cast<float>(sign | (magnitude << 20));
  return tiny * 0x1p120F;
}

/// Nearest E4M3 value, ties to even, saturating at +-448; NaN gives NaN.
inline float round_e4m3(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000U;
  const float magnitude = std::fabs(value);
  if (!(magnitude <= kE4m3Max)) {
    return std::isnan(value) ? value : std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(kE4m3Max));
  }
  float rounded;
  if (magnitude < 0x1p-6F) {
    rounded = (magnitude + 0x1.8p14F) - 0x1.8p14F;  // steps of 2^-9
  } else {
    const std::uint32_t m = bits & 0x7fffffffU;
    rounded = std::bit_cast<float>((m + 0x7ffffU + ((m >> 20) & 1U)) & 0xfff00000U);
  }
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(rounded));
}

/// Code of the nearest E4M3 value (see `round_e4m3`).
inline std::uint8_t to_e4m3(float value) {
  const float rounded = round_e4m3(value);
  const auto sign = static_cast<std::uint8_t>((std::bit_cast<std::uint32_t>(rounded) >> 24) & 0x80U);
  if (std::isnan(rounded)) return sign | 0x7fU;
  const float magnitude = std::fabs(rounded);
  if (magnitude < 0x1p-6F) return sign | static_cast<std::uint8_t>(magnitude * 0x1p9F);
  return sign | static_cast<std::uint8_t>((std::bit_cast<std::uint32_t>(magnitude) >> 20) - (120U << 3));
}

/// 2^(code - 127); code 255 gives NaN, code 0 the subnormal 2^-127.
inline float from_e8m0(std::uint8_t code) {
  if (code == 0) return 0x1p-127F;
  if (code == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(std::uint32_t{code} << 23);
}

/// Code of the smallest power of two that is >= value. `value` must be a positive normal float; exact by
/// construction.
inline std::uint8_t ceil_e8m0(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = (bits >> 23) + ((bits & 0x7fffffU) != 0 ? 1U : 0U);
  return static_cast<std::uint8_t>(exponent);
}

}  // namespace thalweg::numeric
