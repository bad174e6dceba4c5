#include "cache/record.hpp"

#include <cstring>
#include <type_traits>

namespace thalweg::cache {
namespace {

constexpr std::uint64_t kMagic = 0x43454B474C574854;  // "THWLGKEC" in memory order
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kHeaderSeed = 1;
constexpr std::uint64_t kBodySeed = 2;

/// The header as it lies in the file. No padding, so that it can be hashed and copied as bytes.
struct Header {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t kind = 0;
  Key128 space;
  Key128 key;
  Key128 lineage;
  Key128 parent;
  std::uint32_t tokens = 0;
  std::uint32_t images = 0;
  std::uint64_t payload = 0;
  std::uint64_t total = 0;
  Key128 body_checksum;
  Key128 header_checksum;  // of everything before it
};
static_assert(sizeof(Header) == kRecordHeaderBytes && std::has_unique_object_representations_v<Header>);

Key128 header_checksum(const Header& header) {
  return xxh3_128(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_checksum)), kHeaderSeed);
}

std::optional<Header> read_header(std::span<const std::byte> bytes, const Key128& space) {
  Header header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic || header.version != kVersion || header.space != space) return std::nullopt;
  if (header.header_checksum != header_checksum(header)) return std::nullopt;
  if (header.kind != static_cast<std::uint32_t>(RecordKind::block) &&
      header.kind != static_cast<std::uint32_t>(RecordKind::snapshot)) {
    return std::nullopt;
  }
  // 32-bit counts cannot overflow the sum; the payload is compared without adding it.
  const std::uint64_t before = encoded_bytes(header.tokens, header.images, 0);
  if (header.total < before || header.total - before != header.payload) return std::nullopt;
  return header;
}

RecordInfo info_of(const Header& header) {
  return {.kind = static_cast<RecordKind>(header.kind),
          .name = {header.key, header.lineage},
          .parent = header.parent,
          .token_count = header.tokens,
          .bytes = header.total};
}

template <class T>
std::span<const std::byte> take(std::span<const std::byte> bytes, std::size_t count, std::vector<T>& out) {
  out.resize(count);
  if (count > 0) std::memcpy(out.data(), bytes.data(), count * sizeof(T));
  return bytes.subspan(count * sizeof(T));
}

template <class T>
std::byte* put(std::byte* to, const std::vector<T>& values) {
  if (!values.empty()) std::memcpy(to, values.data(), values.size() * sizeof(T));
  return to + values.size() * sizeof(T);
}

}  // namespace

std::size_t encoded_bytes(std::size_t tokens, std::size_t images, std::size_t payload) {
  return kRecordHeaderBytes + tokens * sizeof(TokenId) + images * sizeof(ImageSpan) + payload;
}

std::vector<std::byte> encode_record(const Record& record, const Key128& space) {
  std::vector<std::byte> bytes(
      encoded_bytes(record.tokens.size(), record.images.size(), record.payload.size()));
  put(put(put(bytes.data() + kRecordHeaderBytes, record.tokens), record.images), record.payload);
  Header header;
  header.kind = static_cast<std::uint32_t>(record.info.kind);
  header.space = space;
  header.key = record.info.name.key;
  header.lineage = record.info.name.lineage;
  header.parent = record.info.parent;
  header.tokens = static_cast<std::uint32_t>(record.tokens.size());
  header.images = static_cast<std::uint32_t>(record.images.size());
  header.payload = record.payload.size();
  header.total = bytes.size();
  header.body_checksum = xxh3_128(std::span<const std::byte>(bytes).subspan(kRecordHeaderBytes), kBodySeed);
  header.header_checksum = header_checksum(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

std::optional<RecordInfo> decode_record_header(std::span<const std::byte> bytes, const Key128& space) {
  const std::optional<Header> header = read_header(bytes, space);
  if (!header) return std::nullopt;
  return info_of(*header);
}

std::optional<Record> decode_record(std::span<const std::byte> bytes, const Key128& space) {
  const std::optional<Header> header = read_header(bytes, space);
  if (!header || header->total != bytes.size()) return std::nullopt;
  std::span<const std::byte> body = bytes.subspan(kRecordHeaderBytes);
  if (xxh3_128(body, kBodySeed) != header->body_checksum) return std::nullopt;
  Record record;
  record.info = info_of(*header);
  body = take(body, header->tokens, record.tokens);
  body = take(body, header->images, record.images);
  take(body, header->payload, record.payload);
  return record;
}

}  // namespace thalweg::cache
