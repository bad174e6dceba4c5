// Names of cached records: 128-bit hashes chained over everything a record's bytes depend on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/types.hpp"

namespace thalweg::cache {

/// How the decoder windows come back after a hit. It is part of every key.
enum class ReuseMode {
  exact,   ///< the whole slot is stored at a boundary; the continuation is bit-identical to a cold run
  replay,  ///< only the encoder section is stored; the decoder half runs on the last `keep` tokens of the
           ///< prompt, exactly as a cold prefill with bounded replay does
};

/// Everything but tokens, images and tenant that cached bytes depend on. Two engines share records only if
/// all of it is equal.
struct Namespace {
  std::string model;  ///< digest of the checkpoint
  std::string
      format;  ///< formats of the cached rows and whatever else changes their bits (kernel set, version)
  ReuseMode mode = ReuseMode::exact;
  std::uint32_t keep = 0;  ///< tokens the decoder half replays; 0 in exact mode
};

enum class RecordKind : std::uint32_t {
  block = 1,     ///< a full block of global KV
  snapshot = 2,  ///< windows at a position, and the part of a block before it
};

/// Name of a prefix that ends in this record. `lineage` is a second hash of the same chain, independent of
/// `key`; records are found by `key` and believed only if `lineage` and the record's own tokens agree.
struct ChainKey {
  Key128 key;
  Key128 lineage;
  friend bool operator==(const ChainKey&, const ChainKey&) = default;
};

/// Hash of `bytes` under `seed`.
using HashFunction = Key128 (*)(std::span<const std::byte> bytes, std::uint64_t seed);
Key128 xxh3_128(std::span<const std::byte> bytes, std::uint64_t seed);

/// Computes chained keys. Keeps scratch memory: one thread.
class KeyChain {
 public:
  /// `hash` makes `key` (tests put a colliding one here); `lineage` always is XXH3-128.
  KeyChain(const Namespace& name, const Geometry& geometry, HashFunction hash = xxh3_128);

  /// Digest of the namespace and the record sizes; the first link of every chain.
  const Key128& namespace_digest() const { return digest_; }
  /// Start of a tenant's chains. Equal salts share, different salts never do.
  ChainKey root(std::string_view salt);
  /// The prefix `parent` followed by a slice.
  ChainKey extend(const ChainKey& parent, RecordKind kind, const Content& slice);

 private:
  ChainKey hash_chain(const ChainKey& parent, std::uint32_t tag, std::span<const std::byte> first,
                      std::span<const std::byte> second);

  HashFunction hash_;
  Key128 digest_;
  std::vector<std::byte> scratch_;
};

/// 32 hexadecimal digits, high half first.
std::string to_hex(const Key128& key);

}  // namespace thalweg::cache
