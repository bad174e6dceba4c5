// The inner loops against double precision, on every instruction set of this machine.
#include "backend/cpu/gemm_kernels.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "numeric/bf16.hpp"
#include "numeric/e2m1.hpp"
#include "numeric/float8.hpp"

namespace thalweg::backend::cpu {
namespace {

using Kind = Matrix::Kind;

// A random weight in one format, its bytes and its exact values.
struct Weight {
  Weight(Kind kind, std::size_t rows, std::size_t cols, std::uint32_t seed) {
    matrix.kind = kind;
    matrix.rows = rows;
    matrix.cols = cols;
    std::mt19937 random(seed);
    const std::size_t bits = kind == Kind::f32 ? 32 : kind == Kind::bf16 ? 16 : kind == Kind::fp8 ? 8 : 4;
    data.resize(rows * cols * bits / 8);
    scales.resize((rows + 31) / 32 * ((cols + 31) / 32) * (kind == Kind::fp4 ? 32 : 1));
    for (std::uint8_t& scale : scales) scale = static_cast<std::uint8_t>(115 + random() % 12);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < rows * cols; ++i) values.push_back(make(i, normal(random), random()));
    matrix.data = data.data();
    matrix.scales = scales.data();
  }

  // Stores element i and returns its value.
  double make(std::size_t i, float value, std::uint32_t code) {
    const std::size_t row = i / matrix.cols;
    const std::size_t group = i % matrix.cols / 32;
    switch (matrix.kind) {
      case Kind::f32:
        std::memcpy(data.data() + 4 * i, &value, 4);
        return value;
      case Kind::bf16: {
        const std::uint16_t half = numeric::to_bf16(value);
        std::memcpy(data.data() + 2 * i, &half, 2);
        return numeric::from_bf16(half);
      }
      case Kind::fp8: {
        data[i] = static_cast<std::uint8_t>(code % 127 + (code & 0x80));  // every code but the NaNs
        const std::size_t block = row / 32 * (matrix.cols / 32) + group;
        return double{numeric::from_e4m3(data[i])} * numeric::from_e8m0(scales[block]);
      }
      case Kind::fp4:
        data[i / 2] = static_cast<std::uint8_t>(data[i / 2] | (code & 15) << (i % 2 * 4));
        return double{numeric::from_e2m1(code & 15)} *
               numeric::from_e8m0(scales[row * (matrix.cols / 32) + group]);
    }
    return 0;
  }

  Matrix matrix;
  std::vector<std::uint8_t> data;
  std::vector<std::uint8_t> scales;
  std::vector<double> values;
};

std::vector<float> random_floats(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> product(const Matrix& w, const std::vector<float>& x, std::size_t stride,
                           std::size_t rows) {
  std::vector<float> y(rows * w.rows);
  std::vector<float> scratch(gemm_scratch(w.cols));
  // In two parts, as the tiles of a larger matrix are computed.
  const std::size_t part = w.rows / 2;
  gemm_rows(w, 0, part, x.data(), stride, rows, y.data(), w.rows, scratch.data());
  gemm_rows(w, part, w.rows, x.data(), stride, rows, y.data(), w.rows, scratch.data());
  return y;
}

// Runs a test once for each instruction set.
class Kernels : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    ASSERT_STREQ(simd_target(), hwy::TargetName(GetParam()));
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

// The sets this machine has and the kernels were compiled for: found by asking for each.
std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> result;
  for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    const std::int64_t target = left & -left;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    if (std::strcmp(simd_target(), hwy::TargetName(target)) == 0) result.push_back(target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return result;
}

INSTANTIATE_TEST_SUITE_P(Targets, Kernels, ::testing::ValuesIn(targets()),
                         [](const auto& test) { return std::string(hwy::TargetName(test.param)); });

struct Shape {
  Kind kind;
  std::size_t rows;
  std::size_t cols;
};
constexpr Shape kShapes[] = {{Kind::f32, 24, 256},  {Kind::f32, 7, 1},     {Kind::f32, 9, 31},
                             {Kind::f32, 65, 77},   {Kind::bf16, 33, 128}, {Kind::bf16, 5, 33},
                             {Kind::bf16, 66, 95},  {Kind::fp8, 64, 32},   {Kind::fp8, 96, 160},
                             {Kind::fp4, 70, 96},   {Kind::fp4, 33, 32},   {Kind::fp4, 64, 2304},
                             {Kind::fp8, 160, 5120}};

std::string name(const Shape& shape) {
  const char* kinds[] = {"f32", "bf16", "fp8", "fp4"};
  return std::string(kinds[static_cast<int>(shape.kind)]) + " " + std::to_string(shape.rows) + " x " +
         std::to_string(shape.cols);
}

TEST_P(Kernels, ProductsEqualDoublePrecisionForEveryWeightFormat) {
  for (const Shape& shape : kShapes) {
    const Weight w(shape.kind, shape.rows, shape.cols, 1);
    constexpr std::size_t kRows = 6;
    const std::size_t stride = shape.cols + 3;
    const auto x = random_floats(kRows * stride, 2);
    const auto y = product(w.matrix, x, stride, kRows);
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t n = 0; n < shape.rows; ++n) {
        double sum = 0;
        double size = 0;
        for (std::size_t k = 0; k < shape.cols; ++k) {
          const double term = x[i * stride + k] * w.values[n * shape.cols + k];
          sum += term;
          size += std::abs(term);
        }
        // 32 running sums: the error grows with the terms of one of them.
        const double bound = (static_cast<double>(shape.cols) / 32 + 8) * 0x1p-24 * size;
        ASSERT_NEAR(y[i * shape.rows + n], sum, bound) << name(shape) << " [" << i << ", " << n << "]";
      }
    }
  }
}

TEST_P(Kernels, ARowsResultDoesNotDependOnTheRowsBesideIt) {
  for (const Shape& shape : kShapes) {
    const Weight w(shape.kind, shape.rows, shape.cols, 3);
    const std::size_t stride = shape.cols;
    const auto x = random_floats(37 * stride, 4);
    std::vector<std::vector<float>> single;
    for (std::size_t i = 0; i < 37; ++i) {
      const auto first = x.begin() + static_cast<std::ptrdiff_t>(i * stride);
      single.push_back(product(w.matrix, {first, first + static_cast<std::ptrdiff_t>(stride)}, stride, 1));
    }
    for (const std::size_t rows : {2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 37}) {
      const auto y = product(w.matrix, x, stride, rows);
      for (std::size_t i = 0; i < rows; ++i) {
        ASSERT_EQ(std::memcmp(y.data() + i * shape.rows, single[i].data(), shape.rows * sizeof(float)), 0)
            << name(shape) << ", row " << i << " of " << rows;
      }
    }
  }
}

TEST_P(Kernels, EveryFp8AndFp4CodeIsDecodedExactly) {
  for (const Kind kind : {Kind::fp8, Kind::fp4}) {
    const Weight w(kind, 32, 256, 5);
    std::vector<float> x(5 * 256, 0.0F);
    for (std::size_t k = 0; k < 256; ++k) {
      std::fill(x.begin(), x.end(), 0.0F);
      for (std::size_t i = 0; i < 5; ++i) x[i * 256 + k] = 1.0F;
      for (const std::size_t rows : {1, 5}) {  // decoded in registers, and into scratch
        const auto y = product(w.matrix, x, 256, rows);
        for (std::size_t n = 0; n < 32; ++n) ASSERT_EQ(y[n], w.values[n * 256 + k]) << n << ", " << k;
      }
    }
  }
}

TEST_P(Kernels, WeightedSumsEqualDoublePrecisionAndDoNotDependOnTheHeadsBeside) {
  for (const std::size_t width : {16, 32, 96, 128, 512}) {
    constexpr std::size_t kKeys = 70;
    constexpr std::size_t kHeads = 7;
    const auto weights = random_floats(kHeads * (kKeys + 2), 6);
    const auto values = random_floats(kKeys * width, 7);
    std::vector<float> out(kHeads * width);
    weighted_sum(weights.data(), kKeys + 2, kHeads, values.data(), kKeys, width, out.data(), width);
    for (std::size_t h = 0; h < kHeads; ++h) {
      std::vector<float> one(width);
      weighted_sum(weights.data() + h * (kKeys + 2), kKeys + 2, 1, values.data(), kKeys, width, one.data(),
                   width);
      ASSERT_EQ(std::memcmp(one.data(), out.data() + h * width, width * sizeof(float)), 0) << h;
      for (std::size_t d = 0; d < width; ++d) {
        double sum = 0;
        double size = 0;
        for (std::size_t k = 0; k < kKeys; ++k) {
          const double term = double{weights[h * (kKeys + 2) + k]} * values[k * width + d];
          sum += term;
          size += std::abs(term);
        }
        ASSERT_NEAR(out[h * width + d], sum, kKeys * 0x1p-24 * size) << width << ", " << h << ", " << d;
      }
    }
  }
}

}  // namespace
}  // namespace thalweg::backend::cpu
