// A doubly linked list over ids, ordered by time of last use, with its links in one array.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/types.hpp"

namespace thalweg::cache {

/// Ids 1..records-1, each at most once; oldest first. Allocates nothing after construction. One thread.
class LruList {
 public:
  explicit LruList(std::uint32_t records) : links_(records) {}

  std::uint32_t oldest() const { return links_[kNil].next; }
  std::uint32_t next(std::uint32_t id) const { return links_[id].next; }
  bool contains(std::uint32_t id) const { return links_[id].listed; }
  std::uint64_t last_use(std::uint32_t id) const { return links_[id].last_use; }
  bool empty() const { return oldest() == kNil; }

  /// Puts `id` in its place by `last_use`. O(1) for the newest; a record that became evictable late searches
  /// from the oldest end, where its place normally is.
  void insert(std::uint32_t id, std::uint64_t last_use) {
    check(id != kNil && !links_[id].listed, "listed twice for eviction");
    std::uint32_t after = links_[kNil].previous;
    if (after != kNil && links_[after].last_use > last_use) {
      after = kNil;
      while (links_[links_[after].next].last_use <= last_use) after = links_[after].next;
    }
    const std::uint32_t before = links_[after].next;
    links_[id] = {.previous = after, .next = before, .listed = true, .last_use = last_use};
    links_[after].next = id;
    links_[before].previous = id;
  }

  void erase(std::uint32_t id) {
    check(id != kNil && links_[id].listed, "not listed for eviction");
    links_[links_[id].previous].next = links_[id].next;
    links_[links_[id].next].previous = links_[id].previous;
    links_[id] = {};
  }

 private:
  /// Entry 0 is the ring's head: its next is the oldest, its previous the newest.
  struct Link {
    std::uint32_t previous = kNil;
    std::uint32_t next = kNil;
    bool listed = false;
    std::uint64_t last_use = 0;
  };
  std::vector<Link> links_;
};

}  // namespace thalweg::cache
