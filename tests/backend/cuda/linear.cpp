#include <gtest/gtest.h>

#include "reference.hpp"

namespace thalweg::cuda::test {
namespace {

class CudaLinear : public CudaTest {
 protected:
  std::mt19937 random{7};

  // Runs `weights` over the first `rows` of `x` and gives what came out, [rows][n].
  std::vector<std::uint16_t> run(const Matrix& matrix, const std::vector<std::vector<float>>& x, int rows,
                                 int groups = 1) {
    const auto memory = packed(matrix);
    const LinearWeights weights{{matrix.format, matrix.rows, matrix.columns}, memory.data(), groups};
    const Operand operand(std::vector<std::vector<float>>(x.begin(), x.begin() + rows));
    DeviceArray<std::uint16_t> out(static_cast<std::size_t>(rows) * matrix.rows);
    out.fill(0xFF);
    linear(weights, operand.view, out.data(), nullptr);
    return out.download();
  }

  void expect_products(const Matrix& matrix, const std::vector<std::vector<float>>& x,
                       const std::vector<std::uint16_t>& out) {
    int wrong = 0;
    for (std::size_t row = 0; row < x.size(); ++row) {
      for (int n = 0; n < matrix.rows; ++n) {
        const float* weight = &matrix.values[static_cast<std::size_t>(n) * matrix.columns];
        const double expected = dot(weight, x[row].data(), matrix.columns);
        const double magnitude = std::sqrt(dot(weight, weight, matrix.columns) *
                                           dot(x[row].data(), x[row].data(), matrix.columns));
        if (!close_bf16(from_bf16(out[row * matrix.rows + n]), expected, magnitude) && wrong++ < 3) {
          ADD_FAILURE() << "row " << row << " column " << n << ": got "
                        << from_bf16(out[row * matrix.rows + n]) << ", expected " << expected;
        }
      }
    }
    EXPECT_EQ(wrong, 0);
  }
};

TEST_F(CudaLinear, Fp8ProductsAreExactForEveryTile) {
  const Matrix matrix(WeightFormat::fp8, 1792, 512, random);
  for (const int rows : {1, 8, 15, 16, 17, 64, 65, 200}) {
    SCOPED_TRACE(rows);
    const auto x = random_rows(rows, matrix.columns, random);
    expect_products(matrix, x, run(matrix, x, rows));
  }
}

TEST_F(CudaLinear, ShapesThatFillNoTileArePadded) {
  for (const auto& [n, k] : {std::pair{32, 32}, {96, 160}, {192, 96}, {320, 384}}) {
    SCOPED_TRACE(n);
    const Matrix matrix(WeightFormat::fp8, n, k, random);
    const auto x = random_rows(21, k, random);
    expect_products(matrix, x, run(matrix, x, 21));
  }
}

TEST_F(CudaLinear, EveryCodeAndScaleWidensExactly) {
  Matrix matrix(WeightFormat::fp8, 64, 256, random);
  const std::vector<int> scales{20, 60, 120, 127, 134};
  for (const int scale : scales) {
    for (auto& code : matrix.scales) code = static_cast<std::uint8_t>(scale);
    for (int i = 0; i < 64 * 256; ++i) {
      matrix.codes[i] = static_cast<std::uint8_t>((i % 256 & 127) == 127 ? 0 : i % 256);
      matrix.values[i] = from_e8m0(scale) * from_e4m3(matrix.codes[i]);
    }
    // A row that picks one column: the product is the weight itself (4 significant bits: exact in bf16).
    for (const int column : {0, 1, 8, 63, 100, 129, 255}) {
      std::vector<std::vector<float>> x(1, std::vector<float>(256, 0.0f));
      x[0][column] = 1;
      const auto out = run(matrix, x, 1);
      for (int n = 0; n < 64; ++n) EXPECT_EQ(from_bf16(out[n]), matrix.values[n * 256 + column]);
    }
  }
}

TEST_F(CudaLinear, ARowDoesNotDependOnItsBatch) {
  for (const auto& [n, k] : {std::pair{1792, 5120}, {8192, 1280}}) {
    const Matrix matrix(WeightFormat::fp8, n, k, random);
    const auto x = random_rows(300, k, random);
    const auto all = run(matrix, x, 300);
    for (const int rows : {1, 3, 16, 40, 64, 100, 128}) {
      const auto some = run(matrix, x, rows);
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << n << " x " << k << ", rows " << rows;
    }
  }
}

TEST_F(CudaLinear, GroupsReadTheirOwnInput) {
  const Matrix matrix(WeightFormat::fp8, 1024, 512, random);
  for (const int rows : {5, 70}) {
    const auto x = random_rows(4 * rows, 512, random);
    DeviceArray<std::uint16_t> all(4 * operand_values(rows, 512));
    for (int group = 0; group < 4; ++group) {
      const Operand one(
          std::vector<std::vector<float>>(x.begin() + group * rows, x.begin() + (group + 1) * rows));
      check(cudaMemcpy(all.data() + group * one.memory.size(), one.memory.data(), one.memory.size() * 2,
                       cudaMemcpyDeviceToDevice),
            "copy");
    }
    const auto memory = packed(matrix);
    DeviceArray<std::uint16_t> out(static_cast<std::size_t>(rows) * 1024);
    linear({{matrix.format, 1024, 512}, memory.data(), 4}, {all.data(), rows, 512}, out.data(), nullptr);
    const auto got = out.download();
    int wrong = 0;
    for (int row = 0; row < rows; ++row) {
      for (int n = 0; n < 1024; ++n) {
        const double expected = dot(&matrix.values[n * 512], x[n / 256 * rows + row].data(), 512);
        wrong += !close_bf16(from_bf16(got[row * 1024 + n]), expected, 40);
      }
    }
    EXPECT_EQ(wrong, 0);
  }
}

TEST_F(CudaLinear, Bf16WeightsGiveFloatResults) {
  for (const auto& [n, k] : {std::pair{384, 512}, {20000, 256}}) {
    const Matrix matrix(WeightFormat::bf16, n, k, random);
    const auto memory = packed(matrix);
    for (const int rows : {1, 33, 130}) {
      const auto x = random_rows(rows, k, random);
      const Operand operand(x);
      DeviceArray<float> out(static_cast<std::size_t>(rows) * n);
      out.fill(0xFF);
      linear_float({{matrix.format, n, k}, memory.data(), 1}, operand.view, out.data(), nullptr);
      const auto got = out.download();
      int wrong = 0;
      for (int row = 0; row < rows; ++row) {
        for (int column = 0; column < n; ++column) {
          const double expected = dot(&matrix.values[static_cast<std::size_t>(column) * k], x[row].data(), k);
          wrong +=
              !(std::fabs(got[static_cast<std::size_t>(row) * n + column] - expected) <= 3e-6 * k * 0.02);
        }
      }
      EXPECT_EQ(wrong, 0) << n << " x " << k << ", rows " << rows;
    }
  }
}

// One channel after the products, in the words of the model specification (3.7).
float swiglu(double gate, double up, float limit) {
  const float a = std::min(rounded(static_cast<float>(gate)), limit);
  const float u = std::clamp(rounded(static_cast<float>(up)), -limit, limit);
  return a / (1 + std::exp(-a)) * u;
}

TEST_F(CudaLinear, SwigluIsClampedAndQuantised) {
  const Matrix gate(WeightFormat::fp8, 96, 256, random);
  const Matrix up(WeightFormat::fp8, 96, 256, random);
  const PackedShape shape{WeightFormat::fp8, 192, 256};
  DeviceArray<std::uint8_t> memory(shape.bytes());
  pack_pair(gate, up, memory.data());
  for (const int rows : {1, 40, 130}) {
    const auto x = random_rows(rows, 256, random);
    const Operand operand(x);
    const Operand out(rows, 96);
    linear_swiglu({shape, memory.data(), 1}, operand.view, 2.0f, out.view, nullptr);
    const auto got = out.download();
    int wrong = 0;
    for (int row = 0; row < rows; ++row) {
      std::vector<float> values(96);
      for (int channel = 0; channel < 96; ++channel) {
        values[channel] = rounded(swiglu(dot(&gate.values[channel * 256], x[row].data(), 256),
                                         dot(&up.values[channel * 256], x[row].data(), 256), 2.0f));
      }
      const auto expected = quantised_fp8(values);
      // A bf16 rounding of gate or up that falls the other way may move the value one E4M3 step.
      for (int channel = 0; channel < 96; ++channel) {
        wrong += !(std::fabs(got[row][channel] - expected[channel]) <=
                   0.14f * std::fabs(expected[channel]) + 0.01f);
      }
    }
    EXPECT_EQ(wrong, 0) << rows;
  }
}

TEST_F(CudaLinear, TooLargeAScaleIsReported) {
  Matrix matrix(WeightFormat::fp8, 64, 128, random);
  matrix.scales[3] = 135;
  const PackedShape shape{matrix.format, matrix.rows, matrix.columns};
  DeviceArray<std::uint8_t> target(shape.bytes());
  DeviceArray<int> flag(std::vector<int>{0});
  const DeviceMatrix device(matrix);
  pack(shape, device.source(), target.data(), flag.data(), nullptr);
  EXPECT_EQ(flag.download()[0], 1);
}

}  // namespace
}  // namespace thalweg::cuda::test
