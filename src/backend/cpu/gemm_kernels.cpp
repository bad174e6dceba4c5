#include "backend/cpu/gemm_kernels.hpp"

#include <algorithm>
#include <type_traits>

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

constexpr std::size_t kLanes = HWY_MIN(HWY_LANES(float), 16);
constexpr std::size_t kSums = 16;  // running sums of one product
constexpr std::size_t kVectors = kSums / kLanes;
constexpr std::size_t kGroup = 32;  // columns decoded at once
constexpr std::size_t kGroupVectors = kGroup / kLanes;
constexpr std::size_t kOutputs = 16;  // products whose sums are folded together
static_assert(kLanes >= 4, "the folds below work on 4, 8 or 16 lanes");

// Rows of a matrix in each format: load32 gives the values of columns [k, k + 32), at() one value. FP8 and
// FP4 rows have whole groups of 32 only.
struct F32Row {
  const float* values;
  HWY_INLINE float at(std::size_t k) const { return values[k]; }
  HWY_INLINE void load32(std::size_t k, V* out) const {
    for (std::size_t v = 0; v < kGroupVectors; ++v) out[v] = hn::LoadU(D(), values + k + v * kLanes);
  }
};

struct Bf16Row {
  const std::uint16_t* bits;
  HWY_INLINE float at(std::size_t k) const { return numeric::from_bf16(bits[k]); }
  HWY_INLINE void load32(std::size_t k, V* out) const {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::Rebind<std::uint32_t, D> d32;
    for (std::size_t v = 0; v < kGroupVectors; ++v) {
      out[v] = hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, bits + k + v * kLanes))));
    }
  }
};

struct Fp8Row {
  const std::uint8_t* codes;
  const std::uint8_t* scales;  // one per 32 columns
  HWY_INLINE float at(std::size_t) const { return 0; }
  HWY_INLINE void load32(std::size_t k, V* out) const {
    const hn::Repartition<std::int16_t, D> d16;
    const hn::Half<decltype(d16)> half16;
    const hn::Rebind<std::int8_t, decltype(d16)> d8;
    const hn::Rebind<hwy::float16_t, D> dhalf;
    // An E4M3 code moved into a half float reads as the value times 2^-8, subnormals included. Widening
    // repeats the sign in the bit above the exponent, which must be 0 there.
    const V scale = hn::Set(D(), numeric::from_e8m0(scales[k / 32]) * 256.0F);
    for (std::size_t v = 0; v < kGroupVectors; v += 2) {
      const auto* from = reinterpret_cast<const std::int8_t*>(codes) + k + v * kLanes;
      const auto wide = hn::ShiftLeft<7>(hn::PromoteTo(d16, hn::LoadU(d8, from)));
      const auto bits = hn::And(wide, hn::Set(d16, static_cast<std::int16_t>(0xbfff)));
      const auto low = hn::BitCast(dhalf, hn::LowerHalf(half16, bits));
      const auto high = hn::BitCast(dhalf, hn::UpperHalf(half16, bits));
      out[v] = hn::Mul(hn::PromoteTo(D(), low), scale);
      out[v + 1] = hn::Mul(hn::PromoteTo(D(), high), scale);
    }
  }
};

struct Fp4Row {
  const std::uint8_t* codes;
  const std::uint8_t* scales;
  HWY_INLINE float at(std::size_t) const { return 0; }
  HWY_INLINE void load32(std::size_t k, V* out) const {
    alignas(16) static constexpr std::int8_t kTwice[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                           0, -1, -2, -3, -4, -6, -8, -12};
    const hn::CappedTag<std::uint16_t, 16> d16;
    const hn::Rebind<std::uint8_t, decltype(d16)> packed8;
    const hn::Repartition<std::uint8_t, decltype(d16)> d8;
    const auto table = hn::LoadDup128(d8, reinterpret_cast<const std::uint8_t*>(kTwice));
    alignas(32) std::int8_t values[32];
    for (std::size_t part = 0; part < 16; part += hn::Lanes(d16)) {
      // A byte holds the codes of two columns, the lower in its low half: spread over two bytes.
      const auto wide = hn::PromoteTo(d16, hn::LoadU(packed8, codes + k / 2 + part));
      const auto both = hn::And(hn::Or(wide, hn::ShiftLeft<4>(wide)), hn::Set(d16, 0x0f0f));
      hn::StoreU(hn::TableLookupBytes(table, hn::BitCast(d8, both)), d8,
                 reinterpret_cast<std::uint8_t*>(values) + 2 * part);
    }
    const V scale = hn::Set(D(), numeric::from_e8m0(scales[k / 32]) * 0.5F);
    const hn::Rebind<std::int8_t, D> di8;
    const hn::Rebind<std::int32_t, D> di32;
    for (std::size_t v = 0; v < kGroupVectors; ++v) {
      const auto twice = hn::PromoteTo(di32, hn::LoadU(di8, values + v * kLanes));
      out[v] = hn::Mul(hn::ConvertTo(D(), twice), scale);
    }
  }
};

// The steps of a fold: each adds the two halves of what is left of a's lanes and of b's, and keeps both
// results in one vector.
HWY_INLINE V fold_halves(V a, V b) {
  return hn::Add(hn::ConcatLowerLower(D(), b, a), hn::ConcatUpperUpper(D(), b, a));
}
HWY_INLINE V fold_blocks(V a, V b) {
  return hn::Add(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a),
                 hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a)));
}
HWY_INLINE V fold_pairs(V a, V b) {
  const hn::Repartition<double, D> wide;
  const auto low = hn::InterleaveLower(wide, hn::BitCast(wide, a), hn::BitCast(wide, b));
  const auto high = hn::InterleaveUpper(wide, hn::BitCast(wide, a), hn::BitCast(wide, b));
  return hn::Add(hn::BitCast(D(), low), hn::BitCast(D(), high));
}
HWY_INLINE V fold_lanes(V a, V b) {
  return hn::Add(hn::OddEven(hn::DupEven(b), a), hn::OddEven(b, hn::DupOdd(a)));
}

// The sum over the lanes of each of kLanes vectors, as one vector in the same order: lanes are added by
// halves. Vectors enter in bit-reversed order, because each step puts a's results beside b's.
HWY_INLINE V fold(const V* sums) {
  constexpr std::size_t kReversed[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
  V left[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) left[i] = sums[kReversed[i] * kLanes / 16];
  std::size_t count = kLanes;
  const auto step = [&](auto two) HWY_ATTR {
    count /= 2;
    for (std::size_t i = 0; i < count; ++i) left[i] = two(left[2 * i], left[2 * i + 1]);
  };
  if constexpr (kLanes >= 8) step([](V a, V b) HWY_ATTR { return fold_halves(a, b); });
  if constexpr (kLanes >= 16) step([](V a, V b) HWY_ATTR { return fold_blocks(a, b); });
  step([](V a, V b) HWY_ATTR { return fold_pairs(a, b); });
  step([](V a, V b) HWY_ATTR { return fold_lanes(a, b); });
  return left[0];
}

// Running sums of kOutputs products.
struct Sums {
  V of[kOutputs][kVectors];

  HWY_INLINE void clear(std::size_t from) {
    for (std::size_t n = from; n < kOutputs; ++n) {
      for (std::size_t v = 0; v < kVectors; ++v) of[n][v] = hn::Zero(D());
    }
  }
  HWY_INLINE void totals(float* out) const {
    V single[kOutputs];
    for (std::size_t n = 0; n < kOutputs; ++n) {
      V part[kVectors];
      for (std::size_t v = 0; v < kVectors; ++v) part[v] = of[n][v];
      for (std::size_t width = kVectors / 2; width > 0; width /= 2) {
        for (std::size_t v = 0; v < width; ++v) part[v] = hn::Add(part[v], part[v + width]);
      }
      single[n] = part[0];
    }
    for (std::size_t n = 0; n < kOutputs; n += kLanes) hn::StoreU(fold(single + n), D(), out + n);
  }
};

// Running sums of N weight rows against M input rows; `to` are the sums of the input rows, from output n on.
template <std::size_t N, std::size_t M, class Row>
HWY_INLINE void sum_block(const Row* rows, std::size_t cols, const float* x, std::size_t x_stride, Sums* to,
                          std::size_t at) {
  V sums[M][N][kVectors];
  for (std::size_t i = 0; i < M; ++i) {
    for (std::size_t n = 0; n < N; ++n) {
      for (std::size_t v = 0; v < kVectors; ++v) sums[i][n][v] = hn::Zero(D());
    }
  }
  for (std::size_t k = 0; k + kGroup <= cols; k += kGroup) {
    V w[N][kGroupVectors];
    for (std::size_t n = 0; n < N; ++n) rows[n].load32(k, w[n]);
    for (std::size_t v = 0; v < kGroupVectors; ++v) {
      for (std::size_t i = 0; i < M; ++i) {
        const V in = hn::LoadU(D(), x + i * x_stride + k + v * kLanes);
        for (std::size_t n = 0; n < N; ++n) {
          sums[i][n][v % kVectors] = hn::MulAdd(in, w[n][v], sums[i][n][v % kVectors]);
        }
      }
    }
  }
  for (std::size_t i = 0; i < M; ++i) {
    for (std::size_t n = 0; n < N; ++n) {
      for (std::size_t v = 0; v < kVectors; ++v) to[i].of[at + n][v] = sums[i][n][v];
    }
  }
}

// Products of the columns after the last whole group.
template <class Row>
HWY_INLINE float tail(const Row& row, const float* x, std::size_t cols) {
  float sum = 0;
  for (std::size_t k = cols / kGroup * kGroup; k < cols; ++k) sum += x[k] * row.at(k);
  return sum;
}

// Registers: with 32 of them the sums of 4 x 4 products fit beside the inputs, else of 2 x 2.
constexpr std::size_t kBlockN = kVectors == 1 ? 4 : 2;
constexpr std::size_t kBlockM = kVectors == 1 ? 4 : 2;

// `count` <= kOutputs weight rows against M input rows.
template <std::size_t M, class Row>
HWY_INLINE void outputs(const Row* rows, std::size_t count, std::size_t cols, const float* x,
                        std::size_t x_stride, float* y, std::size_t y_stride) {
  Sums sums[M];
  std::size_t n = 0;
  for (; n + kBlockN <= count; n += kBlockN) {
    sum_block<kBlockN, M>(rows + n, cols, x, x_stride, sums, n);
  }
  for (; n < count; ++n) sum_block<1, M>(rows + n, cols, x, x_stride, sums, n);
  for (std::size_t i = 0; i < M; ++i) {
    float* out = y + i * y_stride;
    float whole[kOutputs];
    if (count < kOutputs) sums[i].clear(count);
    sums[i].totals(count < kOutputs ? whole : out);
    if (count < kOutputs) std::copy_n(whole, count, out);
    if (cols % kGroup == 0) continue;
    for (n = 0; n < count; ++n) out[n] += tail(rows[n], x + i * x_stride, cols);
  }
}

template <class Row>
HWY_INLINE void all_inputs(const Row* rows, std::size_t count, std::size_t cols, const float* x,
                           std::size_t x_stride, std::size_t m, float* y, std::size_t y_stride) {
  std::size_t i = 0;
  for (; i + kBlockM <= m; i += kBlockM) {
    outputs<kBlockM>(rows, count, cols, x + i * x_stride, x_stride, y + i * y_stride, y_stride);
  }
  const float* rest = x + i * x_stride;
  float* to = y + i * y_stride;
  if (kBlockM > 2 && m - i == 3) {
    outputs<3>(rows, count, cols, rest, x_stride, to, y_stride);
  } else if (kBlockM > 2 && m - i == 2) {
    outputs<2>(rows, count, cols, rest, x_stride, to, y_stride);
  } else if (m - i == 1) {
    outputs<1>(rows, count, cols, rest, x_stride, to, y_stride);
  }
}

template <class Row>
HWY_INLINE void decode_row(const Row& row, std::size_t cols, float* out) {
  for (std::size_t k = 0; k + kGroup <= cols; k += kGroup) {
    V w[kGroupVectors];
    row.load32(k, w);
    for (std::size_t v = 0; v < kGroupVectors; ++v) hn::StoreU(w[v], D(), out + k + v * kLanes);
  }
  for (std::size_t k = cols / kGroup * kGroup; k < cols; ++k) out[k] = row.at(k);
}

// Weights meet at most kBlockM input rows in the registers where they are decoded; for more rows they are
// decoded once, into `scratch` (kOutputs rows).
template <class Row, class RowAt>
HWY_INLINE void product(RowAt row_at, std::size_t first, std::size_t last, std::size_t cols, const float* x,
                        std::size_t x_stride, std::size_t m, float* y, std::size_t y_stride, float* scratch) {
  for (std::size_t begin = first; begin < last; begin += kOutputs) {
    const std::size_t count = HWY_MIN(kOutputs, last - begin);
    Row rows[kOutputs];
    for (std::size_t n = 0; n < count; ++n) rows[n] = row_at(begin + n);
    if constexpr (!std::is_same_v<Row, F32Row>) {
      if (m > kBlockM) {
        F32Row decoded[kOutputs];
        for (std::size_t n = 0; n < count; ++n) {
          decode_row(rows[n], cols, scratch + n * cols);
          decoded[n].values = scratch + n * cols;
        }
        all_inputs(decoded, count, cols, x, x_stride, m, y + begin, y_stride);
        continue;
      }
    }
    all_inputs(rows, count, cols, x, x_stride, m, y + begin, y_stride);
  }
}

void GemmRows(const Matrix& w, std::size_t first, std::size_t last, const float* x, std::size_t x_stride,
              std::size_t m, float* y, std::size_t y_stride, float* scratch) {
  const std::size_t cols = w.cols;
  const auto* bytes = static_cast<const std::uint8_t*>(w.data);
  const auto run = [&](auto row_at) {
    product<decltype(row_at(0))>(row_at, first, last, cols, x, x_stride, m, y, y_stride, scratch);
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
  const std::size_t step = kStep * kLanes;
  for (std::size_t d = 0; d < d_count; d += step) {
    V sums[H][kStep];
    for (std::size_t h = 0; h < H; ++h) {
      for (std::size_t v = 0; v < kStep; ++v) sums[h][v] = hn::Zero(D());
    }
    const std::size_t vectors = HWY_MIN(kStep, (d_count - d) / kLanes);
    for (std::size_t k = 0; k < keys; ++k) {
      const float* value = values + k * d_count + d;
      for (std::size_t h = 0; h < H; ++h) {
        const V weight = hn::Set(D(), weights[h * weights_stride + k]);
        for (std::size_t v = 0; v < vectors; ++v) {
          sums[h][v] = hn::MulAdd(weight, hn::LoadU(D(), value + v * kLanes), sums[h][v]);
        }
      }
    }
    for (std::size_t h = 0; h < H; ++h) {
      for (std::size_t v = 0; v < vectors; ++v)
        hn::StoreU(sums[h][v], D(), out + h * out_stride + d + v * kLanes);
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
  return 16 * cols;
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
