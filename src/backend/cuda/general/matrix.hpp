// A weight matrix in device memory.
#pragma once

#include <cstdint>

namespace thalweg::cuda::general {

/// A linear weight [rows, cols] in device memory, y = x * W^T.
struct Matrix {
  enum class Kind : std::uint8_t { f32, bf16, fp8, fp4 };
  Kind kind = Kind::f32;
  const std::uint8_t* data = nullptr;
  const std::uint8_t* scales = nullptr;  ///< fp8: one per 32x32 block; fp4: one per row and 32 columns
  int rows = 0;
  int cols = 0;
};

}  // namespace thalweg::cuda::general
