// One view type over every weight format, so that a product is written once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "checkpoint/weights.hpp"

namespace thalweg::backend::cpu {

/// A linear weight [rows, cols] as it lies in memory, y = x * W^T. Does not own the bytes.
struct Matrix {
  enum class Kind : std::uint8_t { f32, bf16, fp8, fp4 };
  Kind kind = Kind::f32;
  const void* data = nullptr;
  const std::uint8_t* scales = nullptr;  ///< fp8: one per 32x32 block; fp4: one per row and 32 columns
  std::size_t rows = 0;
  std::size_t cols = 0;

  Matrix() = default;
  Matrix(const float* values, std::size_t r, std::size_t c)
      : kind(Kind::f32), data(values), rows(r), cols(c) {}
  explicit Matrix(const checkpoint::Bf16Matrix& m)
      : kind(Kind::bf16),
        data(m.data),
        rows(static_cast<std::size_t>(m.rows)),
        cols(static_cast<std::size_t>(m.cols)) {}
  explicit Matrix(const checkpoint::Fp8Matrix& m)
      : kind(Kind::fp8),
        data(m.codes),
        scales(m.scales),
        rows(static_cast<std::size_t>(m.rows)),
        cols(static_cast<std::size_t>(m.cols)) {}
  explicit Matrix(const checkpoint::Fp4Matrix& m)
      : kind(Kind::fp4),
        data(m.codes),
        scales(m.scales),
        rows(static_cast<std::size_t>(m.rows)),
        cols(static_cast<std::size_t>(m.cols)) {}

  /// Rows [first, first + count); `first` is a multiple of 32 for fp8.
  Matrix slice_rows(std::size_t first, std::size_t count) const;
};

inline Matrix Matrix::slice_rows(std::size_t first, std::size_t count) const {
  Matrix part = *this;
  part.rows = count;
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  switch (kind) {
    case Kind::f32:
      part.data = bytes + first * cols * 4;
      break;
    case Kind::bf16:
      part.data = bytes + first * cols * 2;
      break;
    case Kind::fp8:
      part.data = bytes + first * cols;
      part.scales = scales + first / 32 * ((cols + 31) / 32);
      break;
    case Kind::fp4:
      part.data = bytes + first * cols / 2;
      part.scales = scales + first * (cols / 32);
      break;
  }
  return part;
}

}  // namespace thalweg::backend::cpu
