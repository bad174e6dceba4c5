// Records of the disk tier: any bytes are either refused or a record that encodes to the same bytes again.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "cache/record.hpp"

namespace {

constexpr thalweg::cache::Key128 kSpace{11, 12};

void expect(bool holds) {
  if (!holds) std::abort();
}

/// Puts the right checksums in, so that the checks behind them are reached.
std::vector<std::byte> with_checksums(std::span<const std::byte> bytes) {
  using thalweg::cache::kRecordHeaderBytes;
  std::vector<std::byte> result(bytes.begin(), bytes.end());
  if (result.size() < kRecordHeaderBytes) return result;
  const std::span<std::byte> all(result);
  std::memcpy(result.data() + 16, &kSpace, sizeof kSpace);
  const auto body = thalweg::cache::xxh3_128(all.subspan(kRecordHeaderBytes), 2);
  std::memcpy(result.data() + kRecordHeaderBytes - 32, &body, sizeof body);
  const auto header = thalweg::cache::xxh3_128(all.first(kRecordHeaderBytes - 16), 1);
  std::memcpy(result.data() + kRecordHeaderBytes - 16, &header, sizeof header);
  return result;
}

void check_record(std::span<const std::byte> bytes) {
  const auto info = thalweg::cache::decode_record_header(bytes, kSpace);
  const auto record = thalweg::cache::decode_record(bytes, kSpace);
  if (!record) return;
  expect(info.has_value() && *info == record->info);
  const std::vector<std::byte> again = thalweg::cache::encode_record(*record, kSpace);
  expect(again.size() == bytes.size() && std::memcmp(again.data(), bytes.data(), bytes.size()) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  check_record(bytes);
  check_record(with_checksums(bytes));
  return 0;
}
