#include "cache/record.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>

namespace thalweg::cache {
namespace {

constexpr Key128 kSpace{11, 12};

Record sample(std::size_t tokens = 3, std::size_t images = 1, std::size_t payload = 40) {
  Record record;
  for (std::size_t i = 0; i < tokens; ++i) record.tokens.push_back(static_cast<TokenId>(100 + i));
  for (std::size_t i = 0; i < images; ++i) record.images.push_back({-1, 2, {i, 9}});
  for (std::size_t i = 0; i < payload; ++i) record.payload.push_back(static_cast<std::byte>(i));
  record.info = {.kind = RecordKind::snapshot,
                 .name = {{1, 2}, {3, 4}},
                 .parent = {5, 6},
                 .token_count = static_cast<std::uint32_t>(tokens),
                 .bytes = encoded_bytes(tokens, images, payload)};
  return record;
}

TEST(Record, ComesBackAsItWasWritten) {
  for (const Record& record :
       {sample(), sample(0, 0, 0), sample(0, 0, 7), sample(128, 0, 1000), sample(1, 5, 0)}) {
    const std::vector<std::byte> bytes = encode_record(record, kSpace);
    EXPECT_EQ(bytes.size(), record.info.bytes);
    const std::optional<Record> read = decode_record(bytes, kSpace);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->info, record.info);
    EXPECT_EQ(read->tokens, record.tokens);
    EXPECT_EQ(read->images, record.images);
    EXPECT_EQ(read->payload, record.payload);
    EXPECT_EQ(decode_record_header(bytes, kSpace), record.info);
  }
}

TEST(Record, EveryFlippedBitIsNoticed) {
  const std::vector<std::byte> good = encode_record(sample(), kSpace);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<std::byte> bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(decode_record(bytes, kSpace).has_value()) << "bit " << bit;
  }
}

TEST(Record, EveryCutIsNoticed) {
  const std::vector<std::byte> good = encode_record(sample(), kSpace);
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(decode_record(std::span(good).first(length), kSpace).has_value()) << length << " bytes";
  }
}

/// A record whose header was changed and whose header checksum was made right again.
std::vector<std::byte> forged(const std::function<void(std::byte*)>& change) {
  std::vector<std::byte> bytes = encode_record(sample(), kSpace);
  change(bytes.data());
  const Key128 checksum = xxh3_128(std::span<const std::byte>(bytes).first(kRecordHeaderBytes - 16), 1);
  std::memcpy(bytes.data() + kRecordHeaderBytes - 16, &checksum, 16);
  return bytes;
}

template <class T>
std::function<void(std::byte*)> put(std::size_t offset, T value) {
  return [=](std::byte* bytes) { std::memcpy(bytes + offset, &value, sizeof value); };
}

TEST(Record, MalformedHeadersWithARightChecksumAreRefused) {
  struct Case {
    const char* what;
    std::function<void(std::byte*)> change;
  };
  const Case cases[] = {
      {"another magic", put<std::uint64_t>(0, 1)},
      {"an older version", put<std::uint32_t>(8, 0)},
      {"a newer version", put<std::uint32_t>(8, 2)},
      {"an unknown kind", put<std::uint32_t>(12, 3)},
      {"another namespace", put<std::uint64_t>(16, 99)},
      {"more tokens than bytes", put<std::uint32_t>(80, 0xFFFFFFFF)},
      {"one token less", put<std::uint32_t>(80, 2)},
      {"more images than bytes", put<std::uint32_t>(84, 0xFFFFFFFF)},
      {"a payload beyond the end", put<std::uint64_t>(88, 41)},
      {"a payload that overflows", put<std::uint64_t>(88, ~std::uint64_t{0})},
      {"a total that overflows", put<std::uint64_t>(96, ~std::uint64_t{0})},
      {"a total of nothing", put<std::uint64_t>(96, 0)},
  };
  EXPECT_TRUE(decode_record(forged([](std::byte*) {}), kSpace).has_value());
  for (const Case& test : cases)
    EXPECT_FALSE(decode_record(forged(test.change), kSpace).has_value()) << test.what;
}

TEST(Record, AForeignNamespaceAndTrailingBytesAreRefused) {
  std::vector<std::byte> bytes = encode_record(sample(), kSpace);
  EXPECT_FALSE(decode_record(bytes, {11, 13}).has_value());
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode_record(bytes, kSpace).has_value());
}

TEST(Record, RandomBytesAreNeverARecord) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bytes(random() % 400);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    EXPECT_FALSE(decode_record(bytes, kSpace).has_value());
  }
}

}  // namespace
}  // namespace thalweg::cache
