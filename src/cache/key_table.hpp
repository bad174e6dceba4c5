// Hash table from keys to ids with its chains in one array.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "cache/types.hpp"

namespace thalweg::cache {

/// Ids 1..records-1, each under at most one key; several ids may have equal keys (the owner compares
/// contents). Allocates nothing after construction. One thread.
class KeyTable {
 public:
  explicit KeyTable(std::uint32_t records)
      : heads_(std::bit_ceil(std::uint64_t{records} + records / 2), kNil), next_(records, kNil) {}

  /// First id in the chain of `key`; further ones by `next`. Ids of other keys may be among them.
  std::uint32_t first(const Key128& key) const { return heads_[bucket(key)]; }
  std::uint32_t next(std::uint32_t id) const { return next_[id]; }

  void insert(const Key128& key, std::uint32_t id) {
    next_[id] = heads_[bucket(key)];
    heads_[bucket(key)] = id;
  }

  void erase(const Key128& key, std::uint32_t id) {
    std::uint32_t* link = &heads_[bucket(key)];
    while (*link != id) {
      check(*link != kNil, "a key is not in its table");
      link = &next_[*link];
    }
    *link = next_[id];
    next_[id] = kNil;
  }

 private:
  std::size_t bucket(const Key128& key) const { return key.low & (heads_.size() - 1); }

  std::vector<std::uint32_t> heads_;
  std::vector<std::uint32_t> next_;
};

}  // namespace thalweg::cache
