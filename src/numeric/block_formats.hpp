// Block formats of activations and caches: values in a small format with one scale per group (model
// specification, section 4). Stored and simulated values come from the same functions, so they are equal by
// construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace thalweg::numeric {

/// How a row of a cache is stored.
enum class RowFormat {
  f32,       ///< unrounded (precision `float`)
  fp8_32,    ///< E4M3 codes, one UE8M0 scale per 32: sliding windows and the inputs of FP8/FP4 linears
  mxfp4_32,  ///< E2M1 codes, one UE8M0 scale per 32: index keys and queries
  nvfp4_16,  ///< E2M1 codes, one E4M3 scale per 16: compressed KV
};

const char* row_format_name(RowFormat format);

/// Bytes of the codes of a row of `n` values. `n` is a multiple of the group (32, 32, 16); 1 for f32.
std::size_t code_bytes(RowFormat format, std::size_t n);
/// Bytes of the scales of such a row (0 for f32).
std::size_t scale_bytes(RowFormat format, std::size_t n);
/// Codes and scales together.
inline std::size_t row_bytes(RowFormat format, std::size_t n) {
  return code_bytes(format, n) + scale_bytes(format, n);
}
/// Values that share a scale; 1 for f32.
std::size_t group_size(RowFormat format);

/// Rounds `values` into `codes` and `scales`, which have the sizes given above.
void pack_row(RowFormat format, std::span<const float> values, std::uint8_t* codes, std::uint8_t* scales);

/// The exact values of a stored row.
void unpack_row(RowFormat format, const std::uint8_t* codes, const std::uint8_t* scales,
                std::span<float> values);

/// In place: what unpack_row would give after pack_row.
void round_row(RowFormat format, std::span<float> values);

}  // namespace thalweg::numeric
