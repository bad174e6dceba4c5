#include "backend/cpu/gemm_kernels.hpp"

#include <algorithm>

#include "numeric/bf16.hpp"
#include "numeric/float8.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/gemm_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace thalweg::backend::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr std::size_t kSums = 32;

// Vectors that hold the 32 running sums. Constant for each target.
HWY_INLINE constexpr std::size_t lanes() {
  return HWY_MIN(HWY_LANES(float), 16);
}
constexpr std::size_t kVectors = kSums / (HWY_MIN(HWY_LANES(float), 16));

// Rows of a matrix in each format: load32 gives the values of columns [k, k + 32), at() one value. FP8 and
// FP4 rows have whole groups of 32 only.
struct F32Row {
  const float* values;
  HWY_INLINE float at(std::size_t k) const { return values[k]; }
  HWY_INLINE void load32(std::size_t k, V* out) const {
    for (std::size_t v = 0; v < kVectors; ++v) out[v] = hn::LoadU(D(), values + k + v * lanes());
  }
};

struct Bf16Row {
  const std::uint16_t* bits;
  HWY_INLINE float at(std::size_t k) const { return numeric::from_bf16(bits[k]); }
  HWY_INLINE void load32(std::size_t k, V* out) const {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::Rebind<std::uint32_t, D> d32;
    for (std::size_t v = 0; v < kVectors; ++v) {
      out[v] =
          hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, bits + k + v * lanes()))));
    }
  }
};

struct Fp8Row {
  const std::uint8_t* codes;
  const std::uint8_t* scales;  // one per 32 columns
  HWY_INLINE float at(std::size_t) const { return 0; }
  HWY_INLINE void load32(std::size_t k, V* out) const {
    const hn::Rebind<std::uint8_t, D> d8;
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::Rebind<hwy::float16_t, D> dhalf;
    // An E4M3 code moved into a half float reads as the value times 2^-8, subnormals included.
    const V scale = hn::Set(D(), numeric::from_e8m0(scales[k / 32]) * 256.0F);
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto code = hn::PromoteTo(d16, hn::LoadU(d8, codes + k + v * lanes()));
      const auto sign = hn::ShiftLeft<8>(hn::And(code, hn::Set(d16, 0x80)));
      const auto magnitude = hn::ShiftLeft<7>(hn::And(code, hn::Set(d16, 0x7f)));
      out[v] = hn::Mul(hn::PromoteTo(D(), hn::BitCast(dhalf, hn::Or(sign, magnitude))), scale);
    }
  }
};

struct Fp4Row {
  const std::uint8_t* codes;
  const std::uint8_t* scales;
  HWY_INLINE float at(std::size_t) const { return 0; }
  HWY_INLINE void load32(std::size_t k, V* out) const {
    const hn::Full128<std::uint8_t> d8;
    alignas(16) static constexpr std::int8_t kTwice[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                           0, -1, -2, -3, -4, -6, -8, -12};
    const auto table = hn::LoadDup128(d8, reinterpret_cast<const std::uint8_t*>(kTwice));
    const auto packed = hn::LoadU(d8, codes + k / 2);
    const auto low = hn::TableLookupBytes(table, hn::And(packed, hn::Set(d8, 15)));
    const auto high = hn::TableLookupBytes(table, hn::ShiftRight<4>(packed));
    alignas(32) std::int8_t values[32];
    hn::Store(hn::InterleaveLower(low, high), d8, reinterpret_cast<std::uint8_t*>(values));
    hn::Store(hn::InterleaveUpper(d8, low, high), d8, reinterpret_cast<std::uint8_t*>(values) + 16);
    const V scale = hn::Set(D(), numeric::from_e8m0(scales[k / 32]) * 0.5F);
    const hn::Rebind<std::int8_t, D> di8;
    const hn::Rebind<std::int32_t, D> di32;
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto twice = hn::PromoteTo(di32, hn::LoadU(di8, values + v * lanes()));
      out[v] = hn::Mul(hn::ConvertTo(D(), twice), scale);
    }
  }
};

HWY_INLINE float total(const V* sums) {
  V folded[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) folded[v] = sums[v];
  for (std::size_t width = kVectors / 2; width > 0; width /= 2) {
    for (std::size_t v = 0; v < width; ++v) folded[v] = hn::Add(folded[v], folded[v + width]);
  }
  return hn::GetLane(hn::SumOfLanes(D(), folded[0]));
}

// Products of the columns after the last whole group.
template <class Row>
HWY_INLINE float tail(const Row& row, const float* x, std::size_t cols) {
  float sum = 0;
  for (std::size_t k = cols / kSums * kSums; k < cols; ++k) sum += x[k] * row.at(k);
  return sum;
}

// One weight row against M input rows; the weights are decoded in registers.
template <std::size_t M, class Row>
HWY_INLINE void dot_rows(const Row& row, std::size_t cols, const float* x, std::size_t x_stride, float* y,
                         std::size_t y_stride) {
  V sums[M][kVectors];
  for (std::size_t i = 0; i < M; ++i) {
    for (std::size_t v = 0; v < kVectors; ++v) sums[i][v] = hn::Zero(D());
  }
  for (std::size_t k = 0; k + kSums <= cols; k += kSums) {
    V w[kVectors];
    row.load32(k, w);
    for (std::size_t i = 0; i < M; ++i) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[i][v] = hn::MulAdd(hn::LoadU(D(), x + i * x_stride + k + v * lanes()), w[v], sums[i][v]);
      }
    }
  }
  for (std::size_t i = 0; i < M; ++i) y[i * y_stride] = total(sums[i]) + tail(row, x + i * x_stride, cols);
}

// N decoded weight rows (`tile`, each `cols` floats) against M input rows.
template <std::size_t N, std::size_t M>
HWY_INLINE void dot_block(const float* tile, std::size_t cols, const float* x, std::size_t x_stride, float* y,
                          std::size_t y_stride) {
  V sums[M][N][kVectors];
  for (std::size_t i = 0; i < M; ++i) {
    for (std::size_t n = 0; n < N; ++n) {
      for (std::size_t v = 0; v < kVectors; ++v) sums[i][n][v] = hn::Zero(D());
    }
  }
  for (std::size_t k = 0; k + kSums <= cols; k += kSums) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      V in[M];
      for (std::size_t i = 0; i < M; ++i) in[i] = hn::LoadU(D(), x + i * x_stride + k + v * lanes());
      for (std::size_t n = 0; n < N; ++n) {
        const V w = hn::LoadU(D(), tile + n * cols + k + v * lanes());
        for (std::size_t i = 0; i < M; ++i) sums[i][n][v] = hn::MulAdd(in[i], w, sums[i][n][v]);
      }
    }
  }
  for (std::size_t i = 0; i < M; ++i) {
    for (std::size_t n = 0; n < N; ++n) {
      y[i * y_stride + n] = total(sums[i][n]) + tail(F32Row{tile + n * cols}, x + i * x_stride, cols);
    }
  }
}

// Registers: with 32 vector registers 4 x 2 blocks of two vectors fit, else 2 x 1.
constexpr std::size_t kBlockN = kVectors <= 2 ? 4 : 2;
constexpr std::size_t kBlockM = kVectors <= 2 ? 2 : 1;

template <class Row>
HWY_INLINE void decode_row(const Row& row, std::size_t cols, float* out) {
  for (std::size_t k = 0; k + kSums <= cols; k += kSums) {
    V w[kVectors];
    row.load32(k, w);
    for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(w[v], D(), out + k + v * lanes());
  }
  for (std::size_t k = cols / kSums * kSums; k < cols; ++k) out[k] = row.at(k);
}

template <std::size_t N>
HWY_INLINE void tile_columns(const float* tile, std::size_t cols, const float* x, std::size_t x_stride,
                             std::size_t m, float* y, std::size_t y_stride) {
  std::size_t i = 0;
  for (; i + kBlockM <= m; i += kBlockM) {
    dot_block<N, kBlockM>(tile, cols, x + i * x_stride, x_stride, y + i * y_stride, y_stride);
  }
  for (; i < m; ++i) dot_block<N, 1>(tile, cols, x + i * x_stride, x_stride, y + i * y_stride, y_stride);
}

// Decodes weight rows in groups that stay in the second-level cache, then passes over all input rows.
template <class RowAt>
HWY_INLINE void many_rows(RowAt row_at, std::size_t first, std::size_t last, std::size_t cols, const float* x,
                          std::size_t x_stride, std::size_t m, float* y, std::size_t y_stride,
                          float* scratch) {
  const std::size_t group = gemm_scratch(cols) / cols;
  constexpr std::size_t kInputs = 16;  // input rows that share one pass over the group
  for (std::size_t begin = first; begin < last; begin += group) {
    const std::size_t count = HWY_MIN(group, last - begin);
    for (std::size_t n = 0; n < count; ++n) decode_row(row_at(begin + n), cols, scratch + n * cols);
    for (std::size_t i = 0; i < m; i += kInputs) {
      const std::size_t inputs = HWY_MIN(kInputs, m - i);
      const float* xi = x + i * x_stride;
      float* yi = y + i * y_stride + begin;
      std::size_t n = 0;
      for (; n + kBlockN <= count; n += kBlockN) {
        tile_columns<kBlockN>(scratch + n * cols, cols, xi, x_stride, inputs, yi + n, y_stride);
      }
      for (; n < count; ++n)
        tile_columns<1>(scratch + n * cols, cols, xi, x_stride, inputs, yi + n, y_stride);
    }
  }
}

template <class RowAt>
HWY_INLINE void product(RowAt row_at, std::size_t first, std::size_t last, std::size_t cols, const float* x,
                        std::size_t x_stride, std::size_t m, float* y, std::size_t y_stride, float* scratch) {
  if (m > 4) return many_rows(row_at, first, last, cols, x, x_stride, m, y, y_stride, scratch);
  for (std::size_t n = first; n < last; ++n) {
    const auto row = row_at(n);
    switch (m) {
      case 1:
        dot_rows<1>(row, cols, x, x_stride, y + n, y_stride);
        break;
      case 2:
        dot_rows<2>(row, cols, x, x_stride, y + n, y_stride);
        break;
      case 3:
        dot_rows<3>(row, cols, x, x_stride, y + n, y_stride);
        break;
      case 4:
        dot_rows<4>(row, cols, x, x_stride, y + n, y_stride);
        break;
      default:
        break;
    }
  }
}

void GemmRows(const Matrix& w, std::size_t first, std::size_t last, const float* x, std::size_t x_stride,
              std::size_t m, float* y, std::size_t y_stride, float* scratch) {
  const std::size_t cols = w.cols;
  const auto* bytes = static_cast<const std::uint8_t*>(w.data);
  const auto run = [&](auto row_at) {
    product(row_at, first, last, cols, x, x_stride, m, y, y_stride, scratch);
  };
  switch (w.kind) {
    case Matrix::Kind::f32:
      return run([&](std::size_t n) { return F32Row{static_cast<const float*>(w.data) + n * cols}; });
    case Matrix::Kind::bf16:
      return run(
          [&](std::size_t n) { return Bf16Row{static_cast<const std::uint16_t*>(w.data) + n * cols}; });
    case Matrix::Kind::fp8:
      return run([&](std::size_t n) { return Fp8Row{bytes + n * cols, w.scales + n / 32 * (cols / 32)}; });
    case Matrix::Kind::fp4:
      return run([&](std::size_t n) { return Fp4Row{bytes + n * cols / 2, w.scales + n * (cols / 32)}; });
  }
}

// Output columns that share one pass over the keys.
template <std::size_t H>
HWY_INLINE void weighted_block(const float* weights, std::size_t weights_stride, const float* values,
                               std::size_t keys, std::size_t d_count, float* out, std::size_t out_stride) {
  constexpr std::size_t kStep = 4;  // vectors of d at a time
  const std::size_t step = kStep * lanes();
  for (std::size_t d = 0; d < d_count; d += step) {
    V sums[H][kStep];
    for (std::size_t h = 0; h < H; ++h) {
      for (std::size_t v = 0; v < kStep; ++v) sums[h][v] = hn::Zero(D());
    }
    const std::size_t vectors = HWY_MIN(kStep, (d_count - d) / lanes());
    for (std::size_t k = 0; k < keys; ++k) {
      const float* value = values + k * d_count + d;
      for (std::size_t h = 0; h < H; ++h) {
        const V weight = hn::Set(D(), weights[h * weights_stride + k]);
        for (std::size_t v = 0; v < vectors; ++v) {
          sums[h][v] = hn::MulAdd(weight, hn::LoadU(D(), value + v * lanes()), sums[h][v]);
        }
      }
    }
    for (std::size_t h = 0; h < H; ++h) {
      for (std::size_t v = 0; v < vectors; ++v)
        hn::StoreU(sums[h][v], D(), out + h * out_stride + d + v * lanes());
    }
  }
}

void WeightedSum(const float* weights, std::size_t weights_stride, std::size_t heads, const float* values,
                 std::size_t keys, std::size_t d_count, float* out, std::size_t out_stride) {
  std::size_t h = 0;
  for (; h + 4 <= heads; h += 4) {
    weighted_block<4>(weights + h * weights_stride, weights_stride, values, keys, d_count,
                      out + h * out_stride, out_stride);
  }
  for (; h < heads; ++h) {
    weighted_block<1>(weights + h * weights_stride, weights_stride, values, keys, d_count,
                      out + h * out_stride, out_stride);
  }
}

const char* TargetName() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace thalweg::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thalweg::backend::cpu {

HWY_EXPORT(GemmRows);
HWY_EXPORT(WeightedSum);
HWY_EXPORT(TargetName);

void gemm_rows(const Matrix& w, std::size_t first, std::size_t last, const float* x, std::size_t x_stride,
               std::size_t m, float* y, std::size_t y_stride, float* scratch) {
  HWY_DYNAMIC_DISPATCH(GemmRows)(w, first, last, x, x_stride, m, y, y_stride, scratch);
}

std::size_t gemm_scratch(std::size_t cols) {
  constexpr std::size_t kFloats = 96 * 1024;  // 384 KiB: part of a second-level cache
  return std::clamp<std::size_t>(kFloats / cols / 4 * 4, 4, 64) * cols;
}

void weighted_sum(const float* weights, std::size_t weights_stride, std::size_t heads, const float* values,
                  std::size_t keys, std::size_t d_count, float* out, std::size_t out_stride) {
  HWY_DYNAMIC_DISPATCH(WeightedSum)(weights, weights_stride, heads, values, keys, d_count, out, out_stride);
}

const char* simd_target() {
  return HWY_DYNAMIC_DISPATCH(TargetName)();
}

}  // namespace thalweg::backend::cpu
#endif
