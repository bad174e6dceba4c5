// Plain arithmetic to compare the kernels with: number formats decoded one value at a time, sums in double.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "backend/cuda/device.hpp"
#include "backend/cuda/linear.hpp"
#include "backend/cuda/pack.hpp"

namespace thalweg::cuda::test {

/// Skips the test on a machine without a usable device.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* reason = "";
    if (!device_usable(&reason)) GTEST_SKIP() << "no usable CUDA device: " << reason;
  }
};

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
inline float rounded(float value) {
  return from_bf16(to_bf16(value));
}

inline float from_e4m3(int code) {
  const int exponent = code >> 3 & 15;
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(code & 7), -9)
                                        : std::ldexp(static_cast<float>(8 + (code & 7)), exponent - 10);
  return code & 128 ? -magnitude : magnitude;
}
inline float from_e2m1(int code) {
  constexpr float magnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}
inline float from_e8m0(int code) {
  return std::ldexp(1.0f, code - 127);
}

/// Nearest value of a format given by its non-negative values in ascending order; ties to the even index.
inline float nearest(float value, const std::vector<float>& values) {
  const float magnitude = std::fabs(value);
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const float now = std::fabs(magnitude - values[i]);
    const float before = std::fabs(magnitude - values[best]);
    if (now < before || (now == before && i % 2 == 0)) best = i;
  }
  return std::copysign(values[best], value);
}
inline const std::vector<float>& e4m3_values() {
  static const std::vector<float> values = [] {
    std::vector<float> list;
    for (int code = 0; code < 127; ++code) list.push_back(from_e4m3(code));
    return list;
  }();
  return values;
}
inline float power_scale(float largest, float floor, float limit) {
  int exponent = 0;
  const float mantissa = std::frexp(std::max(largest, floor) / limit, &exponent);
  return std::ldexp(1.0f, mantissa == 0.5f ? exponent - 1 : exponent);
}
/// Q_fp8_32 of a row, decoded.
inline std::vector<float> quantised_fp8(std::vector<float> row) {
  for (std::size_t first = 0; first < row.size(); first += 32) {
    float largest = 0;
    const std::size_t end = std::min(first + 32, row.size());
    for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::fabs(row[i]));
    const float scale = power_scale(largest, 1e-4f, 448);
    for (std::size_t i = first; i < end; ++i) row[i] = nearest(row[i] / scale, e4m3_values()) * scale;
  }
  return row;
}

/// A random matrix in a checkpoint format, on the device and decoded on the host.
struct Matrix {
  WeightFormat format;
  int rows;
  int columns;
  std::vector<std::uint8_t> codes;
  std::vector<std::uint8_t> scales;
  std::vector<float> values;  // [rows, columns]

  Matrix(WeightFormat format_, int rows_, int columns_, std::mt19937& random)
      : format(format_), rows(rows_), columns(columns_), values(static_cast<std::size_t>(rows_) * columns_) {
    std::uniform_int_distribution<int> byte(0, 255);
    std::uniform_int_distribution<int> scale(117, 121);
    if (format == WeightFormat::bf16) {
      std::normal_distribution<float> normal(0, 0.02f);
      codes.resize(values.size() * 2);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint16_t bits = to_bf16(normal(random));
        codes[2 * i] = static_cast<std::uint8_t>(bits & 255);
        codes[2 * i + 1] = static_cast<std::uint8_t>(bits >> 8);
        values[i] = from_bf16(bits);
      }
      return;
    }
    const bool fp8 = format == WeightFormat::fp8;
    const int scale_columns = (columns + 31) / 32;
    scales.resize(static_cast<std::size_t>(fp8 ? (rows + 31) / 32 : rows) * scale_columns);
    for (auto& code : scales) code = static_cast<std::uint8_t>(scale(random) - (fp8 ? 7 : 0));
    codes.resize(fp8 ? values.size() : values.size() / 2);
    for (auto& code : codes) {
      do code = static_cast<std::uint8_t>(byte(random));
      while (fp8 && (code & 127) == 127);
    }
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column) {
        const std::size_t at = static_cast<std::size_t>(row) * columns + column;
        const float factor =
            from_e8m0(scales[static_cast<std::size_t>(fp8 ? row / 32 : row) * scale_columns + column / 32]);
        values[at] =
            factor * (fp8 ? from_e4m3(codes[at]) : from_e2m1(codes[at / 2] >> (column % 2 * 4) & 15));
      }
    }
  }
};

struct DeviceMatrix {
  DeviceArray<std::uint8_t> codes;
  DeviceArray<std::uint8_t> scales;

  explicit DeviceMatrix(const Matrix& matrix) : codes(matrix.codes), scales(matrix.scales) {}
  SourceMatrix source() const { return {codes.data(), scales.data()}; }
};

/// Packed copy of a matrix, or of a gate and an up matrix.
inline DeviceArray<std::uint8_t> packed(const Matrix& matrix) {
  const PackedShape shape{matrix.format, matrix.rows, matrix.columns};
  DeviceArray<std::uint8_t> target(shape.bytes());
  DeviceArray<int> flag(std::vector<int>{0});
  const DeviceMatrix device(matrix);
  pack(shape, device.source(), target.data(), flag.data(), nullptr);
  EXPECT_EQ(flag.download()[0], 0);
  return target;
}
inline void pack_pair(const Matrix& gate, const Matrix& up, std::uint8_t* target) {
  const PackedShape shape{gate.format, 2 * gate.rows, gate.columns};
  DeviceArray<int> flag(std::vector<int>{0});
  const DeviceMatrix first(gate);
  const DeviceMatrix second(up);
  pack_gate_up(shape, first.source(), second.source(), target, flag.data(), nullptr);
  EXPECT_EQ(flag.download()[0], 0);
}

/// Rows of random values that Q_fp8_32 leaves as they are.
inline std::vector<std::vector<float>> random_rows(int rows, int columns, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> list(rows, std::vector<float>(columns));
  for (auto& row : list) {
    for (float& value : row) value = rounded(normal(random));
    row = quantised_fp8(row);
  }
  return list;
}

/// Rows as an operand; what no row fills is NaN, which must not spread.
struct Operand {
  DeviceArray<std::uint16_t> memory;
  OperandView view;

  Operand(int rows, int columns) : memory(operand_values(rows, columns)), view{memory.data(), rows, columns} {
    memory.fill(0xFF);
  }
  explicit Operand(const std::vector<std::vector<float>>& rows)
      : Operand(static_cast<int>(rows.size()), static_cast<int>(rows[0].size())) {
    std::vector<std::uint16_t> host(memory.size(), 0xFFFF);
    for (int row = 0; row < view.rows; ++row) {
      for (int column = 0; column < padded_columns(view.columns); ++column) {
        host[operand_index(row, column, view.atoms())] =
            column < view.columns ? to_bf16(rows[row][column]) : 0;
      }
    }
    memory.upload(host);
  }
  std::vector<std::vector<float>> download() const {
    const auto host = memory.download();
    std::vector<std::vector<float>> rows(view.rows, std::vector<float>(view.columns));
    for (int row = 0; row < view.rows; ++row) {
      for (int column = 0; column < view.columns; ++column) {
        rows[row][column] = from_bf16(host[operand_index(row, column, view.atoms())]);
      }
    }
    return rows;
  }
};

inline double dot(const float* a, const float* b, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

/// got is `expected` up to `ulps` bf16 steps, plus what the order of fp32 sums of size `magnitude` can move.
inline bool close_bf16(double got, double expected, double magnitude, double ulps = 1) {
  return std::fabs(got - expected) <= ulps * std::fabs(expected) / 128 + magnitude * 2e-6;
}

}  // namespace thalweg::cuda::test
