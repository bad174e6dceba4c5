// Small formats and fixed-order sums on the device, the same rules as `numeric/block_formats.hpp`.
#pragma once

#include <cstdint>

#include "backend/cuda/quantise.cuh"
#include "numeric/block_formats.hpp"

namespace thalweg::cuda::general {

using numeric::RowFormat;

__device__ __forceinline__ float bf16_value(std::uint16_t bits) {
  return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
}

/// 2^(code - 127) for every code but 255.
__device__ __forceinline__ float e8m0_value(std::uint32_t code) {
  return code == 0 ? 0x1p-127f : __uint_as_float(code << 23);
}

/// Code of the smallest power of two that is >= value, a positive normal float.
__device__ __forceinline__ std::uint32_t ceil_e8m0(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return (bits >> 23) + ((bits & 0x7FFFFFu) != 0);
}

/// The sum over a warp, by halves: every lane has it.
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int bit = 16; bit > 0; bit /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, bit);
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int bit = 16; bit > 0; bit /= 2) value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, bit));
  return value;
}

/// The sum over a block of at most 1024 threads (whole warps), in an order of its size alone.
__device__ inline float block_sum(float value) {
  __shared__ float parts[32];
  value = warp_sum(value);
  __syncthreads();  // the parts of an earlier sum have been read
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += parts[w];
  return sum;
}

/// Value i of a stored row.
__device__ __forceinline__ float stored_value(RowFormat format, const std::uint8_t* codes,
                                              const std::uint8_t* scales, int i) {
  switch (format) {
    case RowFormat::f32:
      return reinterpret_cast<const float*>(codes)[i];
    case RowFormat::fp8_32:
      return e4m3_value(codes[i]) * e8m0_value(scales[i / 32]);
    case RowFormat::mxfp4_32:
      return e2m1_value(codes[i / 2] >> (i % 2 * 4) & 15) * e8m0_value(scales[i / 32]);
    case RowFormat::nvfp4_16:
      return e2m1_value(codes[i / 2] >> (i % 2 * 4) & 15) * e4m3_value(scales[i / 16]);
  }
  return 0.0f;
}

/// A value's code and what it stands for.
struct Coded {
  std::uint32_t scale;  ///< code of the scale of its group
  std::uint32_t code;
  float value;  ///< rounded
};

/// Rounds one value a lane; the warp holds 32 consecutive values (two groups of nvfp4_16).
__device__ __forceinline__ Coded round_in_warp(RowFormat format, float x) {
  if (format == RowFormat::f32) return {0, 0, x};
  const float largest = largest_of_lanes(fabsf(x), format == RowFormat::nvfp4_16 ? 15 : 31);
  Coded out{};
  if (format == RowFormat::fp8_32) {
    out.scale = ceil_e8m0(fmaxf(largest, 1e-4f) / 448.0f);
    const float scale = e8m0_value(out.scale);
    out.code = e4m3x2_round(x * (1.0f / scale), 0.0f) & 0xFF;
    out.value = e4m3_value(out.code) * scale;
    return out;
  }
  float scale = 0.0f;
  if (format == RowFormat::mxfp4_32) {
    out.scale = ceil_e8m0(fmaxf(largest, 6.0f * 0x1p-126f) / 6.0f);
    scale = e8m0_value(out.scale);
  } else {
    out.scale = e4m3x2_round(fmaxf(largest, 6.0f * 0x1p-9f) / 6.0f, 0.0f) & 0xFF;
    scale = e4m3_value(out.scale);
  }
  out.code = e2m1_code(x / scale);
  out.value = e2m1_value(out.code) * scale;
  return out;
}

/// Stores 32 consecutive values of a row, one a lane, from value `first` on.
__device__ __forceinline__ void store_in_warp(RowFormat format, float x, int first, std::uint8_t* codes,
                                              std::uint8_t* scales) {
  const int lane = threadIdx.x % 32;
  if (format == RowFormat::f32) {
    reinterpret_cast<float*>(codes)[first + lane] = x;
    return;
  }
  const Coded coded = round_in_warp(format, x);
  const int group = format == RowFormat::nvfp4_16 ? 16 : 32;
  if (lane % group == 0) scales[(first + lane) / group] = static_cast<std::uint8_t>(coded.scale);
  if (format == RowFormat::fp8_32) {
    codes[first + lane] = static_cast<std::uint8_t>(coded.code);
    return;
  }
  const std::uint32_t next = __shfl_down_sync(0xFFFFFFFFu, coded.code, 1);
  if (lane % 2 == 0) codes[(first + lane) / 2] = static_cast<std::uint8_t>(coded.code | next << 4);
}

}  // namespace thalweg::cuda::general
