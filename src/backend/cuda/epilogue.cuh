// What becomes of the sums of a product (weight_gemm.cuh): one warp holds the 64 weight rows of a tile for
// one row.
#pragma once

#include "backend/cuda/operand.hpp"
#include "backend/cuda/quantise.cuh"
#include "backend/cuda/weight_gemm.cuh"

namespace thalweg::cuda {

/// Row-major bf16, `columns` values a row.
struct StoreBf16 {
  std::uint16_t* out;
  int columns;

  __device__ static int2 pair(int lane) { return {2 * lane, 2 * lane + 1}; }
  __device__ void store(const GemmJob& job, int row, int tile, float first, float second, int lane) const {
    const int column = tile * 64 + 2 * lane;
    if (column < columns) {
      std::uint16_t* at = out + static_cast<std::size_t>(job.row + row) * columns + column;
      *reinterpret_cast<std::uint32_t*>(at) = ptx::bf16x2_round(first, second);
    }
  }
};

/// Row-major fp32.
struct StoreFloat {
  float* out;
  int columns;

  __device__ static int2 pair(int lane) { return {2 * lane, 2 * lane + 1}; }
  __device__ void store(const GemmJob& job, int row, int tile, float first, float second, int lane) const {
    const int column = tile * 64 + 2 * lane;
    if (column < columns) {
      float* at = out + static_cast<std::size_t>(job.row + row) * columns + column;
      *reinterpret_cast<float2*>(at) = make_float2(first, second);
    }
  }
};

/// Clamped SwiGLU of interleaved gate and up rows, times the row's routing weight, quantised for the next
/// product: a tile holds 32 channels, one group of the quantiser.
struct StoreSwiglu {
  std::uint16_t* out;  // operand
  int atoms;
  float limit;
  const float* weights;  // of each (token, slot); null: 1
  const int* entry_of;   // (token, slot) of an output row, -1 for padding; null without weights

  __device__ static int2 pair(int lane) {
    const int row = lane / 8 * 16 + lane % 8;
    return {row, row + 8};
  }
  __device__ void store(const GemmJob& job, int row, int tile, float gate, float up, int lane) const {
    const float a = fminf(ptx::round_to_bf16(gate), limit);
    const float u = fminf(fmaxf(ptx::round_to_bf16(up), -limit), limit);
    float weight = 1.0f;
    if (weights != nullptr) {
      const int entry = entry_of[job.row + row];
      weight = entry < 0 ? 0.0f : weights[entry];
    }
    float value = weight * (a / (1.0f + expf(-a))) * u;
    value = ptx::round_to_bf16(value);
    const std::uint32_t code = fp8_scale_code(largest_of_lanes(fabsf(value), 31));
    const float rounded = round_to_fp8(value, code);
    out[operand_index(job.row + row, tile * 32 + lane, atoms)] =
        static_cast<std::uint16_t>(__float_as_uint(rounded) >> 16);
  }
};

}  // namespace thalweg::cuda
