// Rotary frequencies and angles of the released configuration, bit for bit.
#include "model/rope.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.hpp"

namespace thalweg::model {
namespace {

const std::filesystem::path kData = std::filesystem::path(THALWEG_SOURCE_DIR) / "tests/data";

template <class T>
std::vector<T> values(const checkpoint::SafetensorsFile& file, const char* name) {
  const auto bytes = file.at(name).bytes;
  std::vector<T> result(bytes.size() / sizeof(T));
  std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

void expect_same_bits(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(actual[i]), std::bit_cast<std::uint32_t>(expected[i])) << i;
  }
}

TEST(Rope, FrequenciesAreTheGoldenBits) {
  const checkpoint::SafetensorsFile file(kData / "primitives/rope.safetensors");
  const RopeFrequencies rope = rope_frequencies(checkpoint::load_config(kData / "released_config.json"));
  expect_same_bits(rope.plain, values<float>(file, "window_inv_freq"));
  expect_same_bits(rope.compressed, values<float>(file, "compressed_inv_freq"));
}

TEST(Rope, AnglesAreTheGoldenBitsUpToTheLastPosition) {
  const checkpoint::SafetensorsFile file(kData / "primitives/rope.safetensors");
  const auto positions = values<std::int32_t>(file, "positions");
  const std::pair<const char*, const char*> kinds[] = {{"window_inv_freq", "window_angles"},
                                                       {"compressed_inv_freq", "compressed_angles"}};
  for (const auto& [frequencies_name, angles_name] : kinds) {
    const auto frequencies = values<float>(file, frequencies_name);
    std::vector<float> angles;
    for (const std::int32_t position : positions) {
      for (const float frequency : frequencies) angles.push_back(rope_angle(position, frequency));
    }
    expect_same_bits(angles, values<float>(file, angles_name));
  }
}

TEST(Rope, YarnLeavesFastFrequenciesAndDividesSlowOnes) {
  const auto config = checkpoint::load_config(kData / "released_config.json");
  const RopeFrequencies rope = rope_frequencies(config);
  auto unscaled = config;
  unscaled.rope_scaling.factor = 1;
  const RopeFrequencies plain = rope_frequencies(unscaled);
  for (int i = 0; i <= 15; ++i) EXPECT_EQ(rope.compressed[i], plain.compressed[i]) << i;
  for (int i = 25; i < 32; ++i) EXPECT_EQ(rope.compressed[i], plain.compressed[i] / 16) << i;
}

}  // namespace
}  // namespace thalweg::model
