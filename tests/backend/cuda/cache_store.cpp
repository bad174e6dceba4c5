#include "backend/cuda/cache_store.hpp"

#include <gtest/gtest.h>

#include "numeric/block_formats.hpp"
#include "reference.hpp"

namespace thalweg::cuda::test {
namespace {

using numeric::RowFormat;

class CudaCacheStore : public CudaTest {
 protected:
  static constexpr int rows = 37;
  std::mt19937 random{23};
  std::vector<std::uint16_t> values;
  std::vector<float2> rotations = std::vector<float2>(rows * 32);

  CudaCacheStore() {
    std::normal_distribution<float> normal;
    for (int i = 0; i < rows * head_width; ++i) {
      values.push_back(to_bf16(normal(random) * std::exp(2 * std::sin(static_cast<float>(i / head_width)))));
    }
    for (auto& rotation : rotations) {
      const float angle = std::uniform_real_distribution<float>(-3, 3)(random);
      rotation = {std::cos(angle), std::sin(angle)};
    }
  }

  std::vector<float> rotated(int row, int width) const {
    std::vector<float> out(width);
    for (int i = 0; i < width; ++i) out[i] = from_bf16(values[row * width + i]);
    for (int pair = 0; pair < 32; ++pair) {
      float* at = &out[width - 64 + 2 * pair];
      const float2 r = rotations[row * 32 + pair];
      const float u = at[0];
      const float v = at[1];
      at[0] = rounded(u * r.x - v * r.y);
      at[1] = rounded(u * r.y + v * r.x);
    }
    return out;
  }

  std::vector<std::uint8_t> stored(RowFormat format, int row) const {
    std::vector<std::uint8_t> bytes(numeric::row_bytes(format, head_width));
    numeric::pack_row(format, rotated(row, head_width), bytes.data(),
                      bytes.data() + numeric::code_bytes(format, head_width));
    return bytes;
  }
};

TEST_F(CudaCacheStore, WindowRowsAreTheModelsBytes) {
  std::vector<StorePlace> places;
  for (int i = 0; i < rows; ++i) places.push_back({i % 2, i == 5 ? -1 : 100 + i});
  DeviceArray<std::uint8_t> memory(std::size_t{2} * 134 * window_row_bytes);
  memory.fill(0xEE);
  const DeviceArray<std::uint16_t> value_memory(values);
  const DeviceArray<float2> rotation_memory(rotations);
  const DeviceArray<StorePlace> place_memory(places);
  const WindowCache cache{memory.data(), std::size_t{134} * window_row_bytes, 134};
  store_window_rows(value_memory.data(), head_width, rows, rotation_memory.data(), place_memory.data(), cache,
                    nullptr);
  const auto bytes = memory.download();
  for (int i = 0; i < rows; ++i) {
    const auto at = bytes.begin() + (i % 2 * 134 + (100 + i) % 134) * window_row_bytes;
    const auto expected =
        i == 5 ? std::vector<std::uint8_t>(window_row_bytes, 0xEE) : stored(RowFormat::fp8_32, i);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), at)) << i;
  }
}

TEST_F(CudaCacheStore, CompressedRowsAreTheModelsBytes) {
  std::vector<StorePlace> places;
  for (int i = 0; i < rows; ++i) places.push_back({0, 3 * i});
  DeviceArray<std::uint8_t> memory(std::size_t{2} * 64 * compressed_row_bytes);
  const DeviceArray<int> table(std::vector<int>{1, 0});
  const DeviceArray<std::uint16_t> value_memory(values);
  const DeviceArray<float2> rotation_memory(rotations);
  const DeviceArray<StorePlace> place_memory(places);
  const CompressedCache cache{memory.data(), std::size_t{64} * compressed_row_bytes, 64, table.data(), 2};
  store_compressed_rows(value_memory.data(), rows, rotation_memory.data(), place_memory.data(), cache,
                        nullptr);
  const auto bytes = memory.download();
  for (int i = 0; i < rows; ++i) {
    const int page = 3 * i / 64 == 0 ? 1 : 0;
    const auto expected = stored(RowFormat::nvfp4_16, i);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                           bytes.begin() + (page * 64 + 3 * i % 64) * compressed_row_bytes))
        << i;
  }
}

TEST_F(CudaCacheStore, IndexQueriesAreRotatedAndQuantised) {
  const int tokens = rows * head_width / (index_heads * index_width);
  const DeviceArray<std::uint16_t> value_memory(values);
  const DeviceArray<float2> rotation_memory(rotations);
  DeviceArray<std::uint16_t> out(operand_values(tokens * index_heads, index_width));
  quantise_index_queries(value_memory.data(), tokens, rotation_memory.data(), out.data(), nullptr);
  const auto got = out.download();
  for (int vector = 0; vector < tokens * index_heads; ++vector) {
    std::vector<float> expected(index_width);
    for (int i = 0; i < index_width; ++i) expected[i] = from_bf16(values[vector * index_width + i]);
    for (int pair = 0; pair < 32; ++pair) {
      float* at = &expected[64 + 2 * pair];
      const float2 r = rotations[vector / index_heads * 32 + pair];
      const float u = at[0];
      const float v = at[1];
      at[0] = rounded(u * r.x - v * r.y);
      at[1] = rounded(u * r.y + v * r.x);
    }
    numeric::round_row(RowFormat::mxfp4_32, expected);
    for (int i = 0; i < index_width; ++i) {
      ASSERT_EQ(from_bf16(got[operand_index(vector, i, atom_count(tokens * index_heads))]), expected[i]);
    }
  }
}

TEST_F(CudaCacheStore, HeadsAreRotatedInPlaceAndAnglesAreAccurate) {
  const std::vector<int> positions{0, 1, 77777, 1048575};
  const std::vector<float> frequencies = [] {
    std::vector<float> list(32);
    for (int i = 0; i < 32; ++i) list[i] = static_cast<float>(std::pow(10000.0, -2.0 * i / 64));
    return list;
  }();
  const DeviceArray<int> position_memory(positions);
  const DeviceArray<float> frequency_memory(frequencies);
  DeviceArray<float2> out(positions.size() * 32);
  make_rotations(position_memory.data(), 4, frequency_memory.data(), out.data(), nullptr);
  const auto angles = out.download();
  for (int i = 0; i < 4 * 32; ++i) {
    const float angle = static_cast<float>(positions[i / 32]) * frequencies[i % 32];
    EXPECT_FLOAT_EQ(angles[i].x, static_cast<float>(std::cos(static_cast<double>(angle))));
    EXPECT_FLOAT_EQ(angles[i].y, static_cast<float>(std::sin(static_cast<double>(angle))));
  }
  DeviceArray<std::uint16_t> heads(values);
  const DeviceArray<float2> rotation_memory(rotations);
  rotate_heads(heads.data(), rows, 1, head_width, rotation_memory.data(), nullptr);
  const auto got = heads.download();
  for (int row = 0; row < rows; ++row) {
    const auto expected = rotated(row, head_width);
    for (int i = 0; i < head_width; ++i) ASSERT_EQ(from_bf16(got[row * head_width + i]), expected[i]);
  }
}

}  // namespace
}  // namespace thalweg::cuda::test
