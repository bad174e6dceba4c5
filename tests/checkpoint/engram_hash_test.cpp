// Constants of the Engram hash against released values, golden data and NumPy's own output.
#include "checkpoint/engram_hash.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "checkpoint/numpy_random.hpp"
#include "checkpoint/safetensors.hpp"

namespace thalweg::checkpoint {
namespace {

using ::testing::ElementsAre;

std::filesystem::path source_directory() {
  return THALWEG_SOURCE_DIR;
}

EngramConfig released() {
  return load_config(source_directory() / "tests/data/released_config.json").engram;
}

template <class T>
std::vector<std::int64_t> values(const SafetensorsFile& file, const char* name) {
  const auto bytes = file.at(name).bytes;
  std::vector<T> raw(bytes.size() / sizeof(T));
  std::memcpy(raw.data(), bytes.data(), bytes.size());
  return {raw.begin(), raw.end()};
}

// Row of every column for the token at position `p`, from the hash's definition; `blocked` tokens stop the
// look-back.
std::vector<std::int64_t> rows_at(const EngramHash& hash, int heads, const std::vector<std::int64_t>& tokens,
                                  const std::vector<std::int64_t>& text, std::int64_t pad, std::int64_t p) {
  std::vector<std::int64_t> rows;
  std::int64_t mixed = 0;
  bool open = true;
  for (std::size_t r = 0; r < hash.multipliers.size(); ++r) {
    const std::int64_t q = p - static_cast<std::int64_t>(r);
    open = open && q >= 0 && text[static_cast<std::size_t>(q)] != 0;
    mixed ^= (open ? tokens[static_cast<std::size_t>(q)] : pad) * hash.multipliers[r];
    for (int h = 0; r > 0 && h < heads; ++h) {
      rows.push_back(mixed % hash.primes[rows.size()] + hash.offsets[rows.size()]);
    }
  }
  return rows;
}

void expect_golden(const SafetensorsFile& file, const EngramConfig& config,
                   const std::vector<std::int64_t>& tokens, const std::vector<std::int64_t>& text,
                   std::int64_t pad, const char* hashes_name) {
  const auto hashes = engram_hash(config);
  std::vector<std::int64_t> primes;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> multipliers;
  std::vector<std::int64_t> rows;
  for (const EngramHash& hash : hashes) {
    primes.insert(primes.end(), hash.primes.begin(), hash.primes.end());
    offsets.insert(offsets.end(), hash.offsets.begin(), hash.offsets.end());
    multipliers.insert(multipliers.end(), hash.multipliers.begin(), hash.multipliers.end());
  }
  for (std::size_t p = 0; p < tokens.size(); ++p) {
    for (const EngramHash& hash : hashes) {
      const auto some = rows_at(hash, config.heads, tokens, text, pad, static_cast<std::int64_t>(p));
      rows.insert(rows.end(), some.begin(), some.end());
    }
  }
  EXPECT_EQ(primes, values<std::int32_t>(file, "primes"));
  EXPECT_EQ(offsets, values<std::int32_t>(file, "offsets"));
  EXPECT_EQ(multipliers, values<std::int64_t>(file, "multipliers"));
  EXPECT_EQ(rows, values<std::int32_t>(file, hashes_name));
}

TEST(EngramHash, GivesTheReleasedConstants) {
  const auto hashes = engram_hash(released());
  ASSERT_EQ(hashes.size(), 2U);
  EXPECT_EQ(hashes[0].rows, 384'006'168);
  EXPECT_EQ(hashes[1].rows, 384'016'682);
  EXPECT_EQ(hashes[0].primes.front(), 16'000'057);
  EXPECT_EQ(hashes[0].primes.back(), 16'000'463);
  EXPECT_EQ(hashes[1].primes.front(), 16'000'477);
  EXPECT_EQ(hashes[1].primes.back(), 16'000'889);
  EXPECT_THAT(hashes[0].multipliers,
              ElementsAre(76632096046245, 4839876093313, 35959672319349, 73987337458391));
  EXPECT_THAT(hashes[1].multipliers,
              ElementsAre(67716810739261, 51510806800915, 30921347202721, 82619226485591));
}

TEST(EngramHash, GivesTheReleasedRowsOfAKnownText) {
  const std::vector<std::int64_t> tokens = {237, 4015, 9933, 18307};  // "The quick brown fox"
  const std::vector<std::int64_t> text(tokens.size(), 1);
  const auto hashes = engram_hash(released());
  const auto layer1 = rows_at(hashes[0], 8, tokens, text, 2, 3);
  EXPECT_EQ(layer1[0], 3'548'953);
  EXPECT_EQ(layer1[1], 26'746'392);
  EXPECT_EQ(layer1.back(), 383'971'685);
  const auto layer14 = rows_at(hashes[1], 8, tokens, text, 2, 3);
  EXPECT_EQ(layer14[0], 7'066'053);
  EXPECT_EQ(layer14[1], 21'639'727);
  EXPECT_EQ(layer14.back(), 376'813'552);
  const auto start = rows_at(hashes[0], 8, tokens, text, 2, 0);
  EXPECT_EQ(start.front(), 5'184'683);
  EXPECT_EQ(start.back(), 376'990'358);
}

TEST(EngramHash, EqualsTheReleasedVectors) {
  const SafetensorsFile file(source_directory() / "tests/data/primitives/engram_released.safetensors");
  const auto tokens = values<std::int32_t>(file, "compressed_ids");
  expect_golden(file, released(), tokens, std::vector<std::int64_t>(tokens.size(), 1), 2, "hash_ids");
}

TEST(EngramHash, StopsAtImageTokens) {
  const SafetensorsFile file(source_directory() / "tests/data/primitives/engram_released.safetensors");
  const auto tokens = values<std::int32_t>(file, "compressed_ids");
  expect_golden(file, released(), tokens, values<std::uint8_t>(file, "text_mask"), 2, "hash_ids_with_image");
}

TEST(EngramHash, EqualsTheGoldenModels) {
  for (const char* name : {"tiny", "wide", "long", "realheads"}) {
    const auto directory = source_directory() / "../shared/golden" / name;
    if (!std::filesystem::exists(directory)) GTEST_SKIP() << "golden data directory is missing";
    const SafetensorsFile file(directory / "engram_hash.safetensors");
    const ModelConfig config = load_config(directory / "model/config.json");
    const auto map = values<std::int32_t>(file, "token_map");
    std::vector<std::int64_t> tokens;
    for (const auto id : values<std::int32_t>(file, "input_ids"))
      tokens.push_back(map[static_cast<std::size_t>(id)]);
    const auto pad = map[static_cast<std::size_t>(config.engram.pad_token_id)];
    expect_golden(file, config.engram, tokens, std::vector<std::int64_t>(tokens.size(), 1), pad, "hash_ids");
  }
}

TEST(NumpyRandom, DrawsWhatNumpyDraws) {
  // numpy.random.default_rng(10007 * layer).integers(0, (2**63 - 1) // c // 2, size=4) for other layers and
  // vocabularies.
  struct Case {
    std::uint64_t layer, bound, draws[4];
  };
  const std::vector<Case> cases = {
      {0, INT64_MAX / 439 / 2, {6691269493608811, 2834103908479072, 430426030665715, 173622473085606}},
      {2, INT64_MAX / 460 / 2, {8240519772318246, 3995756216605559, 2439320357589563, 7693045327067859}},
      {1023, INT64_MAX / 3190 / 2, {256559967644414, 1208653763483087, 387347557647434, 1054441969054465}},
      {0, INT64_MAX / 2, {2937467307694268567, 1244171615822312903, 188957027462249005, 76220265684581383}},
      {1023,
       INT64_MAX / 2 / 2,
       {409213148392841107, 1927802752755525599, 617819354447659074, 1681834940641872907}},
      {2, INT64_MAX / 1000000 / 2, {3790639095266, 1838047859638, 1122087364491, 3538800850450}}};
  for (const Case& c : cases) {
    NumpyRandom random(10007 * c.layer);
    for (const std::uint64_t draw : c.draws)
      EXPECT_EQ(random.below(c.bound), draw) << c.layer << " " << c.bound;
  }
}

}  // namespace
}  // namespace thalweg::checkpoint
