// The nouns of the cache room: ids of device records, their sizes, and what a prompt consists of.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace thalweg::cache {

using TokenId = std::int32_t;
using BlockId = std::uint32_t;  ///< one block of global KV on the device
using SlotId = std::uint32_t;   ///< one state slot on the device

/// Id 0 of both pools is never handed out: padding rows write there, and it means "none" in links.
constexpr std::uint32_t kNil = 0;

/// A rule of the cache was broken by a caller or by the cache itself: a programming error, never bad input.
struct BrokenInvariant : std::logic_error {
  using std::logic_error::logic_error;
};

/// Throws BrokenInvariant. Cheap enough for every edge: the message is built only on failure.
inline void check(bool holds, const char* rule) {
  if (!holds) throw BrokenInvariant(std::string("cache: ") + rule);
}

/// Sizes of the opaque device records. The encoder section of a slot is what the layers before the
/// encoder/decoder border need (their window rings and the compressor rings); the decoder section is the
/// rest, draft included.
struct Geometry {
  std::uint32_t block_tokens = 0;
  std::size_t block_bytes = 0;
  std::size_t encoder_bytes = 0;
  std::size_t decoder_bytes = 0;

  std::size_t slot_bytes() const { return encoder_bytes + decoder_bytes; }
};

/// A 128-bit hash value.
struct Key128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Key128&, const Key128&) = default;
};

/// The low half is as random as the whole.
struct Key128Hash {
  std::size_t operator()(const Key128& key) const noexcept { return key.low; }
};

/// An image within a token sequence: its placeholder tokens say nothing, its digest does.
struct ImageSpan {
  std::int64_t begin = 0;  ///< first placeholder position; relative to the record's start inside a record
  std::int64_t tokens = 0;
  Key128 digest;
  friend bool operator==(const ImageSpan&, const ImageSpan&) = default;
};

/// What a sequence consists of so far. Views only: the caller keeps the arrays alive during the call.
/// `images` is sorted by position, without overlaps; those of a slice may reach beyond its ends.
struct Content {
  std::span<const TokenId> tokens;
  std::span<const ImageSpan> images;

  std::int64_t length() const { return static_cast<std::int64_t>(tokens.size()); }
  friend bool operator==(const Content& a, const Content& b) {
    return std::ranges::equal(a.tokens, b.tokens) && std::ranges::equal(a.images, b.images);
  }
};

/// Positions [begin, end) of `content`: its tokens, and the images that overlap it with positions relative to
/// `begin`, which are written to `images` and live there.
Content slice(const Content& content, std::int64_t begin, std::int64_t end, std::vector<ImageSpan>& images);

}  // namespace thalweg::cache
