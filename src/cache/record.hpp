// A cached record off the device: what it is, what it was computed from, and its bytes; and its form on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/prefix_key.hpp"
#include "cache/types.hpp"

namespace thalweg::cache {

/// What a tier must know of a record to find it, without its contents.
struct RecordInfo {
  RecordKind kind = RecordKind::block;
  ChainKey name;
  Key128 parent;                  ///< key of the prefix before the record's first token
  std::uint32_t token_count = 0;  ///< a block's tokens; of a snapshot, the tokens after the last full block
  std::size_t bytes = 0;          ///< size of the encoded record: what a budget is charged
  friend bool operator==(const RecordInfo&, const RecordInfo&) = default;
};

/// Immutable once made. Payload of a block: the block. Of a snapshot: encoder section, decoder section (exact
/// mode), and if token_count > 0 a block of which the first token_count positions are valid.
struct Record {
  RecordInfo info;
  std::vector<TokenId> tokens;
  std::vector<ImageSpan> images;
  std::vector<std::byte> payload;

  Content content() const { return {tokens, images}; }
};
using RecordPtr = std::shared_ptr<const Record>;

/// Size of a record's encoded form.
std::size_t encoded_bytes(std::size_t tokens, std::size_t images, std::size_t payload);

/// The record as a self-describing byte string: header (with its own checksum), tokens, images, payload.
/// `space` is the digest of the namespace it belongs to. Layout in docs/prefix_cache.md.
std::vector<std::byte> encode_record(const Record& record, const Key128& space);

constexpr std::size_t kRecordHeaderBytes = 136;

/// Reads the header at the start of `bytes`: nothing unless it is whole, of this version, of namespace
/// `space` and has the right checksum. `bytes` may be longer. Never throws, never reads out of bounds.
std::optional<RecordInfo> decode_record_header(std::span<const std::byte> bytes, const Key128& space);

/// Reads a whole record: nothing unless header and contents are complete and unchanged and nothing follows.
std::optional<Record> decode_record(std::span<const std::byte> bytes, const Key128& space);

}  // namespace thalweg::cache
