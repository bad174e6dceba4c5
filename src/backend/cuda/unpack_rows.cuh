// Cache rows -> bf16 keys in shared memory, as the matrix unit reads them: 8 slices of 64 channels, each [64
// keys][128 bytes] with the 128-byte swizzle. Keys are held times 2^-8: the scale factors then stay inside
// bf16, the products are exact, and the attention kernel undoes it with a power of two.
#pragma once

#include <cstdint>

#include "backend/cuda/cache_rows.hpp"
#include "backend/cuda/ptx.cuh"

namespace thalweg::cuda {

constexpr int key_tile = 64;
constexpr int key_slice_bytes = key_tile * 128;
constexpr int key_tile_bytes = 8 * key_slice_bytes;
constexpr int key_exponent = -8;

/// Where the 16-byte chunk `chunk` (of 8 channels, 0..63) of a key lies in the tile.
__device__ __forceinline__ int key_chunk_offset(int key, int chunk) {
  return chunk / 8 * key_slice_bytes + key * 128 + ((chunk % 8) ^ (key % 8)) * 16;
}

__device__ __forceinline__ std::uint32_t bf16x2(std::uint32_t bits) {
  return bits << 16 | bits;
}

/// 8 E2M1 codes, even channel in the low nibble, times `scale`, a pair of bf16: 4 pairs of channels.
__device__ __forceinline__ uint4 widen_fp4(std::uint32_t word, std::uint32_t scale) {
  constexpr std::uint32_t sign = 0x80008000u;
  constexpr std::uint32_t magnitude = 0x01C001C0u;
  const std::uint32_t even = word & 0x0F0F0F0Fu;
  const std::uint32_t odd = (word >> 4) & 0x0F0F0F0Fu;
  const std::uint32_t first = __byte_perm(even, odd, 0x5410);   // channels 0 and 2 | 1 and 3
  const std::uint32_t second = __byte_perm(even, odd, 0x7632);  // channels 4 and 6 | 5 and 7
  const auto low = [&](std::uint32_t x) {
    return ptx::bf16x2_multiply(((x << 12) & sign) | ((x << 6) & magnitude), scale);
  };
  const auto high = [&](std::uint32_t x) {
    return ptx::bf16x2_multiply(((x << 4) & sign) | ((x >> 2) & magnitude), scale);
  };
  return make_uint4(low(first), high(first), low(second), high(second));
}

/// 4 E4M3 codes in channel order times `scale`.
__device__ __forceinline__ uint2 widen_fp8(std::uint32_t word, std::uint32_t scale) {
  const auto pair = [&](std::uint32_t x) {
    return ptx::bf16x2_multiply((x & 0x80008000u) | ((x >> 4) & 0x07F007F0u), scale);
  };
  return make_uint2(pair(__byte_perm(word, 0, 0x1404)), pair(__byte_perm(word, 0, 0x3424)));
}

/// Two E4M3 scale codes (bits 0-7, 8-15) as two bf16 pairs, times 2^(126 - 8): what an FP4 bit pattern (value
/// times 2^-126) is multiplied by.
__device__ __forceinline__ uint2 fp4_scales(std::uint32_t codes) {
  // Under bf16's exponent the code is its value times 2^-120; two steps, since 2^238 is not in bf16.
  const std::uint32_t bits = __byte_perm(codes, 0, 0x1404) >> 4 & 0x07F007F0u;
  const std::uint32_t values =
      ptx::bf16x2_multiply(ptx::bf16x2_multiply(bits, bf16x2((119 + 127) << 7)), bf16x2((119 + 127) << 7));
  return make_uint2(__byte_perm(values, 0, 0x1010), __byte_perm(values, 0, 0x3232));
}

/// A quarter of a compressed row (128 channels) on its way from memory: loaded early, widened when there is
/// room.
struct CompressedQuarter {
  uint4 codes[4];
  uint2 scales;

  __device__ __forceinline__ void load(const std::uint8_t* row, int quarter) {
#pragma unroll
    for (int i = 0; i < 4; ++i) codes[i] = __ldg(reinterpret_cast<const uint4*>(row + quarter * 64) + i);
    scales = __ldg(reinterpret_cast<const uint2*>(row + 256 + quarter * 8));
  }
  __device__ __forceinline__ void store(std::uint8_t* tile, int key, int quarter) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint2 scale = fp4_scales((i < 2 ? scales.x : scales.y) >> (i % 2 * 16));
      const std::uint32_t words[4] = {codes[i].x, codes[i].y, codes[i].z, codes[i].w};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int chunk = quarter * 16 + i * 4 + k;
        *reinterpret_cast<uint4*>(tile + key_chunk_offset(key, chunk)) =
            widen_fp4(words[k], k < 2 ? scale.x : scale.y);
      }
    }
  }
};

/// The same of a window row.
struct WindowQuarter {
  uint4 codes[8];
  std::uint32_t scales;

  __device__ __forceinline__ void load(const std::uint8_t* row, int quarter) {
#pragma unroll
    for (int i = 0; i < 8; ++i) codes[i] = __ldg(reinterpret_cast<const uint4*>(row + quarter * 128) + i);
    scales = __ldg(reinterpret_cast<const std::uint32_t*>(row + 512 + quarter * 4));
  }
  __device__ __forceinline__ void store(std::uint8_t* tile, int key, int quarter) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      // 2^(code - 127), times 2^120 for the bit pattern, times 2^-8.
      const std::uint32_t scale =
          __byte_perm(scales, 0, 0x4440 + i / 2) * 0x00800080u + (120 + key_exponent) * 0x00800080u;
      const uint2 a = widen_fp8(codes[i].x, scale);
      const uint2 b = widen_fp8(codes[i].y, scale);
      const uint2 c = widen_fp8(codes[i].z, scale);
      const uint2 d = widen_fp8(codes[i].w, scale);
      const int chunk = quarter * 16 + i * 2;
      *reinterpret_cast<uint4*>(tile + key_chunk_offset(key, chunk)) = make_uint4(a.x, a.y, b.x, b.y);
      *reinterpret_cast<uint4*>(tile + key_chunk_offset(key, chunk + 1)) = make_uint4(c.x, c.y, d.x, d.y);
    }
  }
};

}  // namespace thalweg::cuda
