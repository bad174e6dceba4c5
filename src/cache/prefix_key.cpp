#include "cache/prefix_key.hpp"

#include <fmt/format.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <type_traits>

namespace thalweg::cache {
namespace {

static_assert(std::endian::native == std::endian::little,
              "keys and records are defined over little-endian bytes");
static_assert(std::has_unique_object_representations_v<ImageSpan>, "images are hashed as bytes");

constexpr std::uint32_t kRootTag = 0x746F6F72;  // "root"; record kinds are the other tags
constexpr std::uint64_t kKeySeed = 0;
constexpr std::uint64_t kLineageSeed = 0x9E3779B97F4A7C15;

void append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class T>
void append_value(std::vector<std::byte>& out, const T& value) {
  append(out, std::as_bytes(std::span(&value, 1)));
}

void append_text(std::vector<std::byte>& out, std::string_view text) {
  append_value(out, std::uint64_t{text.size()});
  append(out, std::as_bytes(std::span(text)));
}

}  // namespace

Key128 xxh3_128(std::span<const std::byte> bytes, std::uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
  return {hash.low64, hash.high64};
}

Content slice(const Content& content, std::int64_t begin, std::int64_t end, std::vector<ImageSpan>& images) {
  check(0 <= begin && begin <= end && end <= content.length(), "a slice is out of range");
  images.clear();
  const auto ends_before = [](const ImageSpan& image, std::int64_t position) {
    return image.begin + image.tokens <= position;
  };
  for (auto image = std::lower_bound(content.images.begin(), content.images.end(), begin, ends_before);
       image != content.images.end() && image->begin < end; ++image) {
    images.push_back({image->begin - begin, image->tokens, image->digest});
  }
  return {content.tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
          images};
}

KeyChain::KeyChain(const Namespace& name, const Geometry& geometry, HashFunction hash) : hash_(hash) {
  append_text(scratch_, name.model);
  append_text(scratch_, name.format);
  append_value(scratch_, static_cast<std::uint32_t>(name.mode));
  append_value(scratch_, name.keep);
  for (const std::size_t size : {std::size_t{geometry.block_tokens}, geometry.block_bytes,
                                 geometry.encoder_bytes, geometry.decoder_bytes}) {
    append_value(scratch_, std::uint64_t{size});
  }
  digest_ = xxh3_128(scratch_, kKeySeed);
}

ChainKey KeyChain::root(std::string_view salt) {
  return hash_chain({digest_, digest_}, kRootTag, std::as_bytes(std::span(salt)), {});
}

ChainKey KeyChain::extend(const ChainKey& parent, RecordKind kind, const Content& slice) {
  return hash_chain(parent, static_cast<std::uint32_t>(kind), std::as_bytes(slice.tokens),
                    std::as_bytes(slice.images));
}

ChainKey KeyChain::hash_chain(const ChainKey& parent, std::uint32_t tag, std::span<const std::byte> first,
                              std::span<const std::byte> second) {
  // The parent's place is filled twice: each of the two hashes is chained over its own kind only.
  scratch_.clear();
  append_value(scratch_, parent.key);
  append_value(scratch_, tag);
  append_value(scratch_, std::uint64_t{first.size()});
  append(scratch_, first);
  append(scratch_, second);
  const Key128 key = hash_(scratch_, kKeySeed);
  std::copy_n(std::as_bytes(std::span(&parent.lineage, 1)).begin(), sizeof(Key128), scratch_.begin());
  return {key, xxh3_128(scratch_, kLineageSeed)};
}

std::string to_hex(const Key128& key) {
  return fmt::format("{:016x}{:016x}", key.high, key.low);
}

}  // namespace thalweg::cache
