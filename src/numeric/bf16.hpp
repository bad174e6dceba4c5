// bfloat16: the upper half of a float's bits.
#pragma once

#include <bit>
#include <cstdint>

namespace thalweg::numeric {

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

/// Round to nearest, ties to even; a NaN stays a (quiet) NaN, values beyond the largest bfloat16 become
/// infinite.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

/// The nearest bfloat16 as a float.
inline float round_bf16(float value) {
  return from_bf16(to_bf16(value));
}

}  // namespace thalweg::numeric
