// Engram's table rows against golden hashes, and what an image or the beginning of the text does to them.
#include "model/engram.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "checkpoint/safetensors.hpp"

namespace thalweg::model {
namespace {

const std::filesystem::path kData = std::filesystem::path(THALWEG_SOURCE_DIR) / "tests/data";

checkpoint::EngramConfig released() {
  return checkpoint::load_config(kData / "released_config.json").engram;
}

std::vector<std::int64_t> rows_of(const checkpoint::EngramHash& hash, std::vector<std::int32_t> recent,
                                  std::int64_t pad = 2) {
  recent.resize(hash.multipliers.size(), -1);
  std::vector<std::int64_t> rows(hash.primes.size());
  engram_rows(hash, pad, recent, rows);
  return rows;
}

TEST(EngramRows, AreThePublishedOnesOfAKnownText) {
  const auto hashes = checkpoint::engram_hash(released());
  // "The quick brown fox", newest first.
  const auto last = rows_of(hashes[0], {18307, 9933, 4015, 237});
  EXPECT_EQ(last[0], 3548953);
  EXPECT_EQ(last[1], 26746392);
  EXPECT_EQ(last.back(), 383971685);
  const auto deep = rows_of(hashes[1], {18307, 9933, 4015, 237});
  EXPECT_EQ(deep[0], 7066053);
  EXPECT_EQ(deep.back(), 376813552);
  EXPECT_EQ(rows_of(hashes[0], {237})[0], 5184683);
}

TEST(EngramRows, TakeThePadIdForEverythingBehindTheFirstGap) {
  const auto hash = checkpoint::engram_hash(released())[0];
  EXPECT_EQ(rows_of(hash, {10, -1, 30, 40}), rows_of(hash, {10, 2, 2, 2}));
  EXPECT_EQ(rows_of(hash, {10, 20, -1, 40}), rows_of(hash, {10, 20, 2, 2}));
  EXPECT_EQ(rows_of(hash, {-1, 20, 30, 40}), rows_of(hash, {2, 2, 2, 2}));
}

TEST(EngramRows, LieInsideTheTableOfTheirColumn) {
  for (const auto& hash : checkpoint::engram_hash(released())) {
    for (std::int32_t id = 0; id < 2000; id += 7) {
      const auto rows = rows_of(hash, {id, 99091 - id, id * 3 % 99092, id * 17 % 99092});
      for (std::size_t column = 0; column < rows.size(); ++column) {
        ASSERT_GE(rows[column], hash.offsets[column]);
        ASSERT_LT(rows[column], hash.offsets[column] + hash.primes[column]);
      }
    }
  }
}

// The golden file maps ids to themselves; its positions 30 to 32 are an image in the second variant.
TEST(EngramRows, EqualTheGoldenHashesWithAndWithoutAnImage) {
  const checkpoint::SafetensorsFile file(kData / "primitives/engram_released.safetensors");
  const auto ints = [&](const char* name) {
    const auto bytes = file.at(name).bytes;
    std::vector<std::int32_t> values(bytes.size() / sizeof(std::int32_t));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  const auto tokens = ints("compressed_ids");
  const auto hashes = checkpoint::engram_hash(released());
  for (const bool image : {false, true}) {
    const auto expected = ints(image ? "hash_ids_with_image" : "hash_ids");
    std::size_t at = 0;
    for (std::size_t p = 0; p < tokens.size(); ++p) {
      std::vector<std::int32_t> recent;
      for (std::size_t back = 0; back < 4 && back <= p; ++back) {
        const bool in_image = image && p - back >= 30 && p - back <= 32;
        recent.push_back(in_image ? -1 : tokens[p - back]);
      }
      for (const auto& hash : hashes) {
        for (const std::int64_t row : rows_of(hash, recent)) ASSERT_EQ(row, expected[at++]) << "token " << p;
      }
    }
    EXPECT_EQ(at, expected.size());
  }
}

}  // namespace
}  // namespace thalweg::model
