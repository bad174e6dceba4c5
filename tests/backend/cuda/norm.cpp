#include "backend/cuda/norm.hpp"

#include <gtest/gtest.h>

#include "reference.hpp"

namespace thalweg::cuda::test {
namespace {

class CudaNorm : public CudaTest {
 protected:
  std::mt19937 random{5};

  std::vector<std::uint16_t> values(std::size_t count, float spread) {
    std::normal_distribution<float> normal(0, spread);
    std::vector<std::uint16_t> list(count);
    for (auto& value : list) value = to_bf16(normal(random));
    return list;
  }
};

TEST_F(CudaNorm, QuantisesEveryGroupOf32) {
  for (const int columns : {32, 96, 1280, 5120, 8192}) {
    auto host = values(5 * columns, 3.0f);
    for (int i = 0; i < 32; ++i)
      host[i] = to_bf16(1e-6f * static_cast<float>(i));  // below the floor of the scale
    const DeviceArray<std::uint16_t> rows(host);
    const Operand out(5, columns);
    quantise_rows(rows.data(), columns, out.view, nullptr);
    const auto got = out.download();
    for (int row = 0; row < 5; ++row) {
      std::vector<float> expected(columns);
      for (int i = 0; i < columns; ++i) expected[i] = from_bf16(host[row * columns + i]);
      EXPECT_EQ(got[row], quantised_fp8(expected)) << columns;
    }
  }
}

TEST_F(CudaNorm, NormsThenQuantises) {
  for (const int columns : {512, 1280, 5120}) {
    const auto host = values(3 * columns, 2.0f);
    const auto weight = values(columns, 1.0f);
    const DeviceArray<std::uint16_t> rows(host);
    const DeviceArray<std::uint16_t> scale(weight);
    const Operand plain(3, columns);
    const Operand quantised(3, columns);
    norm_rows(rows.data(), columns, scale.data(), 1e-20f, plain.view, nullptr);
    norm_quantise_rows(rows.data(), columns, scale.data(), 1e-20f, quantised.view, nullptr);
    const auto normed = plain.download();
    const auto got = quantised.download();
    for (int row = 0; row < 3; ++row) {
      double squares = 0;
      for (int i = 0; i < columns; ++i)
        squares += std::pow(static_cast<double>(from_bf16(host[row * columns + i])), 2);
      const double factor = 1 / std::sqrt(squares / columns + 1e-20);
      for (int i = 0; i < columns; ++i) {
        const double expected = from_bf16(host[row * columns + i]) * factor * from_bf16(weight[i]);
        EXPECT_TRUE(close_bf16(normed[row][i], expected, 1, 0.51)) << normed[row][i] << " " << expected;
      }
      EXPECT_EQ(got[row], quantised_fp8(normed[row]));
    }
  }
}

TEST_F(CudaNorm, AZeroRowStaysZero) {
  DeviceArray<std::uint16_t> rows(std::size_t{512});
  rows.fill(0);
  const DeviceArray<std::uint16_t> weight(values(512, 1.0f));
  const Operand out(1, 512);
  norm_quantise_rows(rows.data(), 512, weight.data(), 1e-20f, out.view, nullptr);
  EXPECT_EQ(out.download()[0], std::vector<float>(512, 0.0f));
}

}  // namespace
}  // namespace thalweg::cuda::test
