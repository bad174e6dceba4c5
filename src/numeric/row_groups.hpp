// The groups of the block formats: size, code of a group's scale from its largest magnitude, value of a code.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "numeric/block_formats.hpp"
#include "numeric/float8.hpp"

namespace thalweg::numeric {

struct Fp8Group {
  static constexpr RowFormat kFormat = RowFormat::fp8_32;
  static constexpr std::size_t kSize = 32;
  static std::uint8_t scale_code(float largest) { return ceil_e8m0(std::max(largest, 1e-4F) / kE4m3Max); }
  static float scale(std::uint8_t code) { return from_e8m0(code); }
};

struct Mxfp4Group {
  static constexpr RowFormat kFormat = RowFormat::mxfp4_32;
  static constexpr std::size_t kSize = 32;
  static std::uint8_t scale_code(float largest) { return ceil_e8m0(std::max(largest, 6 * 0x1p-126F) / 6.0F); }
  static float scale(std::uint8_t code) { return from_e8m0(code); }
};

struct Nvfp4Group {
  static constexpr RowFormat kFormat = RowFormat::nvfp4_16;
  static constexpr std::size_t kSize = 16;
  static std::uint8_t scale_code(float largest) { return to_e4m3(std::max(largest, 6 * 0x1p-9F) / 6.0F); }
  static float scale(std::uint8_t code) { return from_e4m3(code); }
};

}  // namespace thalweg::numeric
