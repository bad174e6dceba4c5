// The inner loops of the CPU backend, compiled for several instruction sets and chosen at run time.
//
// Order of summation: a product over k keeps 16 running sums (k mod 16), added up at the end in a fixed
// order. It depends on nothing else: not on the number of rows in the call, their neighbours, tiling or
// threads. That is what makes a result independent of batch and chunking.
#pragma once

#include <cstddef>

#include "backend/cpu/matrix.hpp"

namespace thalweg::backend::cpu {

/// y[i * y_stride + n] = sum_k x[i * x_stride + k] * w[n, k] for rows i < m and first <= n < last of the
/// matrix; y is indexed by n from 0. FP8 and FP4 weights have a multiple of 32 columns; what other weights
/// have beyond that is added last, in order. `scratch` holds at least `gemm_scratch(w.cols)` floats.
void gemm_rows(const Matrix& w, std::size_t first, std::size_t last, const float* x, std::size_t x_stride,
               std::size_t m, float* y, std::size_t y_stride, float* scratch);

/// Floats of scratch that `gemm_rows` needs for matrices of up to `cols` columns.
std::size_t gemm_scratch(std::size_t cols);

/// out[h * out_stride + d] = sum_k weights[h * weights_stride + k] * values[k * d_count + d], k in ascending
/// order, for h < heads.
void weighted_sum(const float* weights, std::size_t weights_stride, std::size_t heads, const float* values,
                  std::size_t keys, std::size_t d_count, float* out, std::size_t out_stride);

/// Name of the instruction set in use, e.g. "AVX3_ZEN4".
const char* simd_target();

}  // namespace thalweg::backend::cpu
