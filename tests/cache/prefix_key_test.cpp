#include "cache/prefix_key.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace thalweg::cache {
namespace {

const Geometry kSizes{.block_tokens = 4, .block_bytes = 32, .encoder_bytes = 16, .decoder_bytes = 16};
const Namespace kName{.model = "m", .format = "f", .mode = ReuseMode::replay, .keep = 3};

std::vector<TokenId> counting(std::size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 1);
  return tokens;
}

std::string first_key(const Namespace& name, const Geometry& sizes, std::string_view salt,
                      const std::vector<TokenId>& tokens, const std::vector<ImageSpan>& images = {}) {
  KeyChain keys(name, sizes);
  return to_hex(keys.extend(keys.root(salt), RecordKind::block, {tokens, images}).key);
}

TEST(PrefixKey, DependsOnEverythingTheBytesDependOn) {
  const std::vector<TokenId> tokens = counting(4);
  std::set<std::string> keys;
  const auto add = [&](const std::string& key) { EXPECT_TRUE(keys.insert(key).second); };
  add(first_key(kName, kSizes, "", tokens));
  add(first_key({.model = "M", .format = "f", .mode = ReuseMode::replay, .keep = 3}, kSizes, "", tokens));
  add(first_key({.model = "m", .format = "F", .mode = ReuseMode::replay, .keep = 3}, kSizes, "", tokens));
  add(first_key({.model = "m", .format = "f", .mode = ReuseMode::exact, .keep = 3}, kSizes, "", tokens));
  add(first_key({.model = "m", .format = "f", .mode = ReuseMode::replay, .keep = 4}, kSizes, "", tokens));
  add(first_key({.model = "mf", .format = "", .mode = ReuseMode::replay, .keep = 3}, kSizes, "", tokens));
  Geometry other = kSizes;
  other.block_bytes = 64;
  add(first_key(kName, other, "", tokens));
  add(first_key(kName, kSizes, "tenant", tokens));
  add(first_key(kName, kSizes, std::string_view("\0", 1), tokens));
  add(first_key(kName, kSizes, "", {1, 2, 3, 5}));
  add(first_key(kName, kSizes, "", {2, 1, 3, 4}));
  add(first_key(kName, kSizes, "", tokens, {{1, 2, {1, 1}}}));
  add(first_key(kName, kSizes, "", tokens, {{1, 2, {1, 2}}}));
  add(first_key(kName, kSizes, "", tokens, {{2, 2, {1, 1}}}));
  EXPECT_TRUE(keys.contains(first_key(kName, kSizes, "", tokens)));
}

TEST(PrefixKey, ChainsOverAllEarlierBlocks) {
  KeyChain keys(kName, kSizes);
  const std::vector<TokenId> a = {1, 2, 3, 4};
  const std::vector<TokenId> b = {1, 2, 3, 5};
  const ChainKey root = keys.root("");
  const ChainKey after_a =
      keys.extend(keys.extend(root, RecordKind::block, {a, {}}), RecordKind::block, {a, {}});
  const ChainKey after_b =
      keys.extend(keys.extend(root, RecordKind::block, {b, {}}), RecordKind::block, {a, {}});
  EXPECT_NE(after_a.key, after_b.key);
  EXPECT_NE(after_a.lineage, after_b.lineage);
}

TEST(PrefixKey, BlocksAndSnapshotsAreNamedApart) {
  KeyChain keys(kName, kSizes);
  const std::vector<TokenId> tokens = counting(3);
  EXPECT_NE(keys.extend(keys.root(""), RecordKind::block, {tokens, {}}).key,
            keys.extend(keys.root(""), RecordKind::snapshot, {tokens, {}}).key);
}

TEST(PrefixKey, LineageIsIndependentOfTheKeyFunction) {
  KeyChain constant(kName, kSizes, [](std::span<const std::byte>, std::uint64_t) { return Key128{5, 5}; });
  KeyChain normal(kName, kSizes);
  const std::vector<TokenId> tokens = counting(4);
  const ChainKey a = constant.extend(constant.root("s"), RecordKind::block, {tokens, {}});
  const ChainKey b = normal.extend(normal.root("s"), RecordKind::block, {tokens, {}});
  EXPECT_EQ(a.key, (Key128{5, 5}));
  EXPECT_EQ(a.lineage, b.lineage);
  EXPECT_NE(b.key, b.lineage);
}

TEST(PrefixKey, SlicesHoldTheImagesThatReachIntoThem) {
  const std::vector<TokenId> tokens = counting(16);
  const std::vector<ImageSpan> images = {{0, 2, {1, 0}}, {3, 6, {2, 0}}, {12, 4, {3, 0}}};
  std::vector<ImageSpan> scratch;
  const auto within = [&](std::int64_t begin, std::int64_t end) {
    const Content part = slice({tokens, images}, begin, end, scratch);
    EXPECT_EQ(part.length(), end - begin);
    return std::vector<ImageSpan>(part.images.begin(), part.images.end());
  };
  EXPECT_EQ(within(0, 4), (std::vector<ImageSpan>{{0, 2, {1, 0}}, {3, 6, {2, 0}}}));
  EXPECT_EQ(within(4, 8), (std::vector<ImageSpan>{{-1, 6, {2, 0}}}));
  EXPECT_EQ(within(8, 12), (std::vector<ImageSpan>{{-5, 6, {2, 0}}}));
  EXPECT_EQ(within(9, 12), (std::vector<ImageSpan>{}));
  EXPECT_EQ(within(12, 16), (std::vector<ImageSpan>{{0, 4, {3, 0}}}));
  EXPECT_THROW(slice({tokens, images}, 12, 17, scratch), BrokenInvariant);
}

}  // namespace
}  // namespace thalweg::cache
