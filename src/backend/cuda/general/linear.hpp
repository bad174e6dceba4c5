// Products of float32 rows with weights in every format of the checkpoint, for any shape. Order of summation:
// a lane of a warp adds the columns 4 lane .. 4 lane + 3, + 128, ...; the lanes are added by halves. It
// depends on the number of columns alone, so a row's result does not depend on the other rows.
#pragma once

#include <cstddef>

#include "backend/cuda/general/matrix.hpp"
#include "backend/cuda/general/rows.hpp"
#include "numeric/block_formats.hpp"

namespace thalweg::cuda::general {

/// y[i, n] = sum_k x[i, k] w[n, k] for i < rows.
struct Product {
  Matrix weight;
  const float* x = nullptr;
  std::size_t x_stride = 0;
  std::size_t rows = 0;
  float* y = nullptr;
  std::size_t y_stride = 0;
};

void multiply(const Product& product);
/// y = x W^T for whole rows; sizes `y`.
void multiply(const Matrix& weight, const Rows& x, Rows& y);

/// Products with one matrix of every expert: `weights` [experts, 3], of which `which` is taken.
struct ExpertProduct {
  const Matrix* weights = nullptr;  ///< device memory
  int which = 0;                    ///< 0 gate, 1 up, 2 down
  Matrix shape;                     ///< of any of them
  int experts = 0;
  const int* starts = nullptr;   ///< [experts + 1] first place of each expert
  const int* sources = nullptr;  ///< [places] row of x; null: the place itself
  const float* x = nullptr;
  float* y = nullptr;  ///< [places, shape.rows]
};
void multiply(const ExpertProduct& product);

/// Rounds whole rows as a cache or an FP8 product wants them; `target` may be the source.
void round_rows(numeric::RowFormat format, const float* source, std::size_t rows, std::size_t width,
                float* target);

}  // namespace thalweg::cuda::general
