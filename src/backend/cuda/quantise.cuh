// The activation quantisers of the model specification, section 4, on values in registers.
#pragma once

#include <cuda_fp8.h>

#include <cstdint>

#include "backend/cuda/ptx.cuh"

namespace thalweg::cuda {

/// Largest magnitude over the lanes of a warp whose index differs only in the bits of `mask` (a power of two
/// minus 1 shifted, e.g. 31 for the whole warp, 28 for lanes with the same two lowest bits).
__device__ __forceinline__ float largest_of_lanes(float value, int mask) {
#pragma unroll
  for (int bit = 16; bit > 0; bit /= 2) {
    if (mask & bit) value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, bit));
  }
  return value;
}

/// E8M0 code of Q_fp8_32's scale, 2^ceil(log2(max(largest, 1e-4) / 448)), exact through the bits.
__device__ __forceinline__ std::uint32_t fp8_scale_code(float largest) {
  const std::uint32_t bits = __float_as_uint(fmaxf(largest, 1e-4f) * (1.0f / 448.0f));
  return (bits >> 23) + ((bits & 0x7FFFFFu) != 0);
}

/// E8M0 code of Q_mxfp4_32's scale, 2^ceil(log2(max(largest, 6 * 2^-126) / 6)).
__device__ __forceinline__ std::uint32_t fp4_scale_code(float largest) {
  const std::uint32_t bits = __float_as_uint(fmaxf(largest, 6.0f * 0x1p-126f) * (1.0f / 6.0f));
  return (bits >> 23) + ((bits & 0x7FFFFFu) != 0);
}

/// 2^(code - 127) for codes 1..254.
__device__ __forceinline__ float scale_value(std::uint32_t code) {
  return __uint_as_float(code << 23);
}
/// 2^(127 - code).
__device__ __forceinline__ float inverse_scale_value(std::uint32_t code) {
  return __uint_as_float((254u - code) << 23);
}

/// Two values to E4M3 codes, nearest even, saturated at 448; `low` in the lower byte.
__device__ __forceinline__ std::uint32_t e4m3x2_round(float low, float high) {
  return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
}
__device__ __forceinline__ float e4m3_value(std::uint32_t code) {
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(code), __NV_E4M3)));
}

/// The value rounded to E4M3 under the scale of `code`.
__device__ __forceinline__ float round_to_fp8(float value, std::uint32_t code) {
  return e4m3_value(e4m3x2_round(value * inverse_scale_value(code), 0.0f) & 0xFF) * scale_value(code);
}

/// E2M1 code, nearest even, saturated at 6.
__device__ __forceinline__ std::uint32_t e2m1_code(float value) {
  const float magnitude = fabsf(value);
  std::uint32_t code;
  if (magnitude < 2.0f) {
    code = static_cast<std::uint32_t>(__float2int_rn(magnitude * 2.0f));  // 0, .5, 1, 1.5, 2
  } else if (magnitude < 4.0f) {
    code = 2 + static_cast<std::uint32_t>(__float2int_rn(magnitude));  // 2, 3, 4
  } else {
    code = magnitude <= 5.0f ? 6 : 7;
  }
  return code | (__float_as_uint(value) >> 31 << 3);
}
/// The value of an E2M1 code (its lowest four bits).
__device__ __forceinline__ float e2m1_value(std::uint32_t code) {
  return __uint_as_float((code & 8) << 28 | (code & 7) << 22) * 0x1p126f;
}

}  // namespace thalweg::cuda
