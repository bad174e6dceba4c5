// Rows of the cache formats and matrices of the weight formats, against golden vectors and their definitions.
#include "numeric/block_formats.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "numeric/bf16.hpp"
#include "numeric/e2m1.hpp"
#include "numeric/float8.hpp"
#include "numeric/golden_file.hpp"

namespace thalweg::numeric {
namespace {

using testing::golden_file;
using testing::golden_values;

constexpr RowFormat kSmallFormats[] = {RowFormat::fp8_32, RowFormat::mxfp4_32, RowFormat::nvfp4_16};

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i]))
        << i << ": " << a[i] << " " << b[i];
  }
}

std::vector<float> stored(RowFormat format, const std::vector<float>& row) {
  std::vector<std::uint8_t> codes(code_bytes(format, row.size()));
  std::vector<std::uint8_t> scales(scale_bytes(format, row.size()));
  pack_row(format, row, codes.data(), scales.data());
  std::vector<float> values(row.size());
  unpack_row(format, codes.data(), scales.data(), values);
  return values;
}

std::vector<float> rounded(RowFormat format, std::vector<float> row) {
  round_row(format, row);
  return row;
}

// Rows of bfloat16 values of very different sizes, with zeros and both signs.
std::vector<float> random_row(std::mt19937& random, std::size_t n) {
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-40, 20);
  std::vector<float> row(n);
  const int size = exponent(random);
  for (float& x : row) x = random() % 9 == 0 ? 0.0F : round_bf16(std::ldexp(normal(random), size));
  return row;
}

TEST(BlockFormats, HaveThePublishedSizes) {
  EXPECT_EQ(row_bytes(RowFormat::fp8_32, 512), 528U);
  EXPECT_EQ(row_bytes(RowFormat::mxfp4_32, 512), 272U);
  EXPECT_EQ(row_bytes(RowFormat::mxfp4_32, 128), 68U);
  EXPECT_EQ(row_bytes(RowFormat::nvfp4_16, 512), 288U);
  EXPECT_EQ(row_bytes(RowFormat::f32, 512), 2048U);
}

TEST(BlockFormats, EqualTheGoldenVectors) {
  const auto file = golden_file("cache_formats");
  const auto input = golden_values<float>(file, "input");
  const auto columns = static_cast<std::size_t>(file.at("input").shape[1]);
  const std::pair<RowFormat, const char*> cases[] = {
      {RowFormat::fp8_32, "fp8_qdq"}, {RowFormat::mxfp4_32, "mxfp4_qdq"}, {RowFormat::nvfp4_16, "nvfp4_qdq"}};
  for (const auto& [format, name] : cases) {
    const auto expected = golden_values<float>(file, name);
    for (std::size_t i = 0; i < input.size(); i += columns) {
      const std::vector<float> row(input.begin() + static_cast<std::ptrdiff_t>(i),
                                   input.begin() + static_cast<std::ptrdiff_t>(i + columns));
      const std::vector<float> values = stored(format, row);
      for (std::size_t k = 0; k < columns; ++k) ASSERT_EQ(values[k], expected[i + k]) << name << " " << i + k;
    }
  }
}

TEST(BlockFormats, GiveTheSpecifiedExample) {
  std::vector<float> x(32);
  for (int i = 0; i < 32; ++i) {
    x[static_cast<std::size_t>(i)] = round_bf16(static_cast<float>(0.03 * ((37 * i) % 64 - 31.5)));
  }
  const auto first = [&](RowFormat format, std::vector<float> expected) {
    std::vector<float> values = stored(format, x);
    values.resize(expected.size());
    expect_same_bits(values, expected);
  };
  first(RowFormat::fp8_32, {-0.9375F, 0.171875F, -0.625F, 0.46875F, -0.34375F, 0.75F, -0.046875F, -0.875F});
  first(RowFormat::mxfp4_32, {-1.0F, 0.125F, -0.75F, 0.5F, -0.375F, 0.75F, -0.0F, -0.75F});
  first(RowFormat::nvfp4_16, {-0.9375F, 0.15625F, -0.625F, 0.46875F, -0.3125F, 0.625F, -0.078125F, -0.9375F});
  std::vector<std::uint8_t> codes(32);
  std::vector<std::uint8_t> scales(2);
  pack_row(RowFormat::fp8_32, x, codes.data(), scales.data());
  EXPECT_EQ(from_e8m0(scales[0]), 0x1p-8F);
  pack_row(RowFormat::mxfp4_32, x, codes.data(), scales.data());
  EXPECT_EQ(from_e8m0(scales[0]), 0.25F);
  pack_row(RowFormat::nvfp4_16, x, codes.data(), scales.data());
  EXPECT_EQ(from_e4m3(scales[0]), 0.15625F);
  EXPECT_EQ(from_e4m3(scales[1]), 0.15625F);
}

TEST(BlockFormats, RoundingInPlaceEqualsStoring) {
  std::mt19937 random(1);
  for (const RowFormat format : kSmallFormats) {
    for (int i = 0; i < 500; ++i) {
      const std::vector<float> row = random_row(random, 96);
      expect_same_bits(rounded(format, row), stored(format, row));
    }
  }
}

TEST(BlockFormats, EveryCodeUnpacksToItsValueTimesTheScale) {
  std::vector<std::uint8_t> codes(256);
  std::iota(codes.begin(), codes.end(), std::uint8_t{0});
  for (const RowFormat format : kSmallFormats) {
    const std::size_t per_byte = format == RowFormat::fp8_32 ? 1 : 2;
    const std::vector<std::uint8_t> scales(256 * per_byte / group_size(format), 0x41);
    const float scale = format == RowFormat::nvfp4_16 ? from_e4m3(0x41) : from_e8m0(0x41);
    std::vector<float> row(256 * per_byte);
    unpack_row(format, codes.data(), scales.data(), row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::uint8_t code = codes[i / per_byte];
      if (per_byte == 1 && (code & 0x7fU) == 0x7f) continue;  // NaN: refused when a checkpoint is read
      const float value = per_byte == 1 ? from_e4m3(code) : from_e2m1(i % 2 == 0 ? code & 15U : code >> 4);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(row[i]), std::bit_cast<std::uint32_t>(value * scale)) << i;
    }
  }
}

TEST(BlockFormats, AShortLastGroupIsRoundedAsIfZerosFollowed) {
  std::mt19937 random(4);
  for (const RowFormat format : kSmallFormats) {
    for (std::size_t size = 1; size < 96; ++size) {
      std::vector<float> row = random_row(random, size);
      std::vector<float> padded = row;
      padded.resize(96, 0.0F);
      padded = rounded(format, padded);
      padded.resize(size);
      expect_same_bits(rounded(format, row), padded);
    }
  }
}

TEST(BlockFormats, AStoredRowSurvivesStoringAgain) {
  std::mt19937 random(2);
  for (const RowFormat format : {RowFormat::fp8_32, RowFormat::mxfp4_32}) {  // scales are powers of two
    for (int i = 0; i < 500; ++i) {
      const std::vector<float> once = stored(format, random_row(random, 64));
      expect_same_bits(stored(format, once), once);
    }
  }
}

TEST(BlockFormats, StoredValuesAreBf16Values) {
  std::mt19937 random(3);
  for (const RowFormat format : kSmallFormats) {
    for (int i = 0; i < 200; ++i) {
      const std::vector<float> values = stored(format, random_row(random, 64));
      for (const float value : values) ASSERT_EQ(round_bf16(value), value);
    }
  }
}

// The scale by the format's definition, in double precision, for every bfloat16 as largest magnitude of a
// group.
TEST(BlockFormats, ScalesFollowTheirDefinitionForEveryLargestMagnitude) {
  for (std::uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const float largest = from_bf16(static_cast<std::uint16_t>(bits));
    if (largest > 0x1p100F) break;
    std::vector<float> row(32, 0.0F);
    row[5] = -largest;
    std::vector<std::uint8_t> codes(32);
    std::vector<std::uint8_t> scales(2);
    pack_row(RowFormat::fp8_32, row, codes.data(), scales.data());
    ASSERT_EQ(std::ldexp(1.0, scales[0] - 127),
              std::exp2(std::ceil(std::log2(std::max<double>(largest, 1e-4F) / 448))))
        << largest;
    pack_row(RowFormat::mxfp4_32, row, codes.data(), scales.data());
    const double mxfp4 = std::max<double>(largest, 6 * 0x1p-126) / 6;
    ASSERT_GE(std::ldexp(1.0, scales[0] - 127), mxfp4) << largest;
    ASSERT_LT(std::ldexp(1.0, scales[0] - 128), mxfp4) << largest;
    pack_row(RowFormat::nvfp4_16, row, codes.data(), scales.data());
    ASSERT_EQ(scales[0], to_e4m3(std::max(largest, 6 * 0x1p-9F) / 6)) << largest;
  }
}

TEST(BlockFormats, PacksTheEvenColumnIntoTheLowNibble) {
  std::vector<float> row(32, 0.0F);
  row[0] = 6.0F;
  row[1] = -3.0F;
  std::vector<std::uint8_t> codes(16);
  std::vector<std::uint8_t> scales(2);
  pack_row(RowFormat::mxfp4_32, row, codes.data(), scales.data());
  EXPECT_EQ(codes[0], 0xd7);
}

TEST(BlockFormats, ZeroRowsStayZero) {
  for (const RowFormat format : kSmallFormats) {
    const std::vector<float> zeros(64, 0.0F);
    expect_same_bits(stored(format, zeros), zeros);
  }
}

TEST(BlockFormats, F32RowsAreKeptAsTheyAre) {
  std::mt19937 random(4);
  const std::vector<float> row = random_row(random, 7);
  expect_same_bits(stored(RowFormat::f32, row), row);
  expect_same_bits(rounded(RowFormat::f32, row), row);
}

TEST(WeightFormats, DenseMatricesDequantiseAsTheGoldenOne) {
  const auto file = golden_file("fp8_matrix");
  const auto codes = golden_values<std::uint8_t>(file, "weight_bytes");
  const auto scales = golden_values<std::uint8_t>(file, "scale_bytes");
  const auto expected = golden_values<float>(file, "dequantised");
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::size_t block = i / 96 / 32 * 3 + i % 96 / 32;
    ASSERT_EQ(from_e4m3(codes[i]) * from_e8m0(scales[block]), expected[i]) << i;
  }
}

TEST(WeightFormats, ExpertMatricesDequantiseAsTheGoldenOne) {
  const auto file = golden_file("fp4_matrix");
  const auto codes = golden_values<std::uint8_t>(file, "weight_bytes");
  const auto scales = golden_values<std::uint8_t>(file, "scale_bytes");
  const auto expected = golden_values<float>(file, "dequantised");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto code = static_cast<std::uint8_t>(i % 2 == 0 ? codes[i / 2] & 15 : codes[i / 2] >> 4);
    ASSERT_EQ(from_e2m1(code) * from_e8m0(scales[i / 32]), expected[i]) << i;
  }
}

TEST(WeightFormats, TablesDequantiseAsTheGoldenOne) {
  const auto file = golden_file("fp8_rowwise_table");
  const auto codes = golden_values<std::uint8_t>(file, "weight_bytes");
  const auto scales = golden_values<std::uint8_t>(file, "scale_bytes");
  const auto expected = golden_values<float>(file, "dequantised");
  std::vector<float> row(64);
  for (std::size_t r = 0; r < 40; ++r) {
    // A table row has the very form of a cache row.
    unpack_row(RowFormat::fp8_32, codes.data() + r * 64, scales.data() + r * 2, row);
    for (std::size_t k = 0; k < 64; ++k) ASSERT_EQ(row[k], expected[r * 64 + k]) << r << " " << k;
  }
}

}  // namespace
}  // namespace thalweg::numeric
