// Weights as the matrix kernels read them, and their way to bf16 in registers.
//
// A packed matrix is a sequence of units of 128 rows x 128 columns, a row of units after the other; a unit is
// four blocks of 64 x 64: its upper tile's two, then its lower tile's. Inside a block the codes lie in the
// order in which the four warps hold them for the matrix instruction, so that each thread reads whole 16-byte
// words, and the scales follow. The bits are those of the checkpoint, in another order: nothing is rounded or
// re-scaled.
//
// `widen` gives the 16 registers of a thread: four steps of 16 columns, for each the registers of `wgmma_rs`.
// Codes become bf16 bit patterns by masks and shifts: sign, exponent and mantissa bits fall where bf16 has
// its own, which is the value times a fixed power of two; one multiplication undoes that and applies the
// scale. Both are exact. The bit order inside a word is chosen so that this takes the fewest instructions,
// which bound the kernels at small M.
#pragma once

#include <cstdint>

#include "backend/cuda/ptx.cuh"

namespace thalweg::cuda {

/// The factor 2^(code - 127) * 2^bias as a bf16 pair, of byte `index` of a word of UE8M0 codes.
template <int bias>
__device__ __forceinline__ std::uint32_t scale_pair(std::uint32_t codes, int index) {
  return __byte_perm(codes, 0, 0x4440 + index) * 0x00800080u + bias * 0x00800080u;
}

/// E4M3 codes with one UE8M0 scale per 32 x 32 (or, for two interleaved matrices, per 32 rows of each and 32
/// columns). A word holds two columns of rows g and g + 8; its lower half has the even, its upper half the
/// odd column: row g with sign 15, exponent and mantissa 10-4; row g + 8 with sign 11, exponent bits 3-1 at
/// 14-12, the rest at 3-0. Scale bytes from 4096 on: [row half: warps 0-1, 2-3][column half][rows g, rows g +
/// 8].
struct Fp8Codec {
  static constexpr int block_bytes = 64 * 64 + 16;
  static constexpr int largest_scale = 134;  ///< UE8M0 code; above it the factor leaves bf16

  __device__ static int code_offset(int warp, int lane) { return (warp * 32 + lane) * 16; }
  __device__ static int scale_offset(int warp, int) { return 4096 + warp / 2 * 4; }

  /// `codes` and `scales` point at the thread's offsets in a block.
  __device__ __forceinline__ static void widen(const std::uint8_t* codes, const std::uint8_t* scales,
                                               std::uint32_t (&a)[16]) {
    const std::uint32_t factors = *reinterpret_cast<const std::uint32_t*>(scales);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint4 words = reinterpret_cast<const uint4*>(codes)[half * 128];
      const std::uint32_t row = scale_pair<120>(factors, 2 * half);
      const std::uint32_t row8 = scale_pair<120>(factors, 2 * half + 1);
      widen_word(words.x, row, row8, a[8 * half + 0], a[8 * half + 1]);
      widen_word(words.y, row, row8, a[8 * half + 2], a[8 * half + 3]);
      widen_word(words.z, row, row8, a[8 * half + 4], a[8 * half + 5]);
      widen_word(words.w, row, row8, a[8 * half + 6], a[8 * half + 7]);
    }
  }

 private:
  // E4M3 bits under bf16's exponent are the value times 2^-120.
  __device__ __forceinline__ static void widen_word(std::uint32_t word, std::uint32_t factor,
                                                    std::uint32_t factor8, std::uint32_t& row,
                                                    std::uint32_t& row8) {
    row = ptx::bf16x2_multiply(word & 0x87F087F0u, factor);
    row8 = ptx::bf16x2_multiply(((word << 4) & 0x80F080F0u) | ((word >> 4) & 0x07000700u), factor8);
  }
};

/// E2M1 codes with one UE8M0 scale per row and 32 columns. Two words hold 16 codes of one row and one thread:
/// the first word columns 0-31, the second columns 32-63 of the block, of each the four codes A, B, C, D of
/// steps (0, k), (0, k + 8), (1, k), (1, k + 8), for the even column in the lower and for the odd column in
/// the upper half (`fp4_half`). Scale bytes from 2048 on: [warp * 8 + g][row g: columns 0-31, 32-63, row g +
/// 8: both].
struct Fp4Codec {
  static constexpr int block_bytes = 64 * 32 + 64 * 2;
  static constexpr int largest_scale = 128;

  __device__ static int code_offset(int warp, int lane) { return (warp * 32 + lane) * 16; }
  __device__ static int scale_offset(int warp, int lane) { return 2048 + (warp * 8 + lane / 4) * 4; }

  __device__ __forceinline__ static void widen(const std::uint8_t* codes, const std::uint8_t* scales,
                                               std::uint32_t (&a)[16]) {
    const uint4 words = *reinterpret_cast<const uint4*>(codes);
    const std::uint32_t factors = *reinterpret_cast<const std::uint32_t*>(scales);
    widen_row(words.x, words.y, scale_pair<126>(factors, 0), scale_pair<126>(factors, 1), a);
    widen_row(words.z, words.w, scale_pair<126>(factors, 2), scale_pair<126>(factors, 3), a + 1);
  }

  /// The half word of codes a, b, c of one column; `c_other` is the other column's C. The four free bits take
  /// the two words' D codes: `d` gives bits 14, 13, 5 and 4.
  __host__ __device__ static std::uint32_t fp4_half(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                                    std::uint32_t c_other, std::uint32_t d) {
    return (a & 8) << 12 | (a & 7) << 6 | (b & 8) << 6 | (b & 7) | (c & 8) | (c_other & 7) << 10 | d;
  }
  /// The D bits of a half of the first and of the second word: `x` and `y` are the first and the second
  /// word's D of its column, `y_other` the second word's D of the other column.
  __host__ __device__ static std::uint32_t first_d(std::uint32_t x, std::uint32_t y_other) {
    return (x & 8) << 10 | (x & 2) << 4 | (x & 1) << 4 | (y_other & 1) << 14;
  }
  __host__ __device__ static std::uint32_t second_d(std::uint32_t x, std::uint32_t y, std::uint32_t y_other) {
    return (x & 4) << 2 | (y & 8) << 2 | (y_other & 2) << 12 | (y_other & 4) << 12;
  }

  // Registers a[0], a[2], ... a[14] of a row. E2M1 bits under bf16's exponent are the value times 2^-126.
  __device__ __forceinline__ static void widen_row(std::uint32_t first, std::uint32_t second,
                                                   std::uint32_t factor, std::uint32_t factor2,
                                                   std::uint32_t* a) {
    constexpr std::uint32_t mask = 0x81C081C0u;  // sign, two exponent bits, mantissa bit
    constexpr std::uint32_t from_first = 0x80C180C1u;
    const std::uint32_t d =
        (__funnelshift_l(first, first, 2) & from_first) | (__funnelshift_l(second, second, 4) & ~from_first);
    a[0] = ptx::bf16x2_multiply(first & mask, factor);
    a[2] = ptx::bf16x2_multiply((first << 6) & mask, factor);
    a[4] = ptx::bf16x2_multiply(__funnelshift_l(first, first, 12) & mask, factor);
    a[6] = ptx::bf16x2_multiply(d & mask, factor);
    a[8] = ptx::bf16x2_multiply(second & mask, factor2);
    a[10] = ptx::bf16x2_multiply((second << 6) & mask, factor2);
    a[12] = ptx::bf16x2_multiply(__funnelshift_l(second, second, 12) & mask, factor2);
    a[14] = ptx::bf16x2_multiply((d << 6) & mask, factor2);
  }
};

/// bf16 values, no scales: 16 bytes a thread and step.
struct Bf16Codec {
  static constexpr int block_bytes = 64 * 64 * 2;

  __device__ static int code_offset(int warp, int lane) { return (warp * 32 + lane) * 16; }
  __device__ static int scale_offset(int, int) { return 0; }

  __device__ __forceinline__ static void widen(const std::uint8_t* codes, const std::uint8_t*,
                                               std::uint32_t (&a)[16]) {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      const uint4 values = reinterpret_cast<const uint4*>(codes)[step * 128];
      a[4 * step + 0] = values.x;
      a[4 * step + 1] = values.y;
      a[4 * step + 2] = values.z;
      a[4 * step + 3] = values.w;
    }
  }
};

}  // namespace thalweg::cuda
