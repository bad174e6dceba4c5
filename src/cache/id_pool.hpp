// Reference-counted ids of equal device records, on a free list inside the array of counts.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/types.hpp"

namespace thalweg::cache {

/// Ids 1..records-1; id 0 is never handed out. Every operation is O(1) and allocates nothing. Taken from the
/// head and returned to the tail of the free list, so the longest-unused record is reused first. One thread.
/// Double release, retaining a free id and ids out of range throw BrokenInvariant.
class IdPool {
 public:
  /// `records` counts id 0 and must be at least 2.
  explicit IdPool(std::uint32_t records);

  /// An id with count 1, or kNil when none is free.
  std::uint32_t allocate();
  /// One more reference to a record in use.
  void retain(std::uint32_t id);
  /// One reference less; true when it was the last and the record is free now.
  bool release(std::uint32_t id);

  std::uint32_t references(std::uint32_t id) const;
  std::uint32_t free_count() const { return free_; }
  /// Records that can be handed out: all but id 0.
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(entries_.size() - 1); }

  /// Every id is on the free list xor counted; throws BrokenInvariant. O(capacity), allocates.
  void check_invariants() const;

 private:
  struct Entry {
    std::uint32_t references = 0;
    std::uint32_t next_free = kNil;
  };
  Entry& entry_in_use(std::uint32_t id, const char* rule);

  std::vector<Entry> entries_;
  std::uint32_t head_ = kNil;
  std::uint32_t tail_ = kNil;
  std::uint32_t free_ = 0;
};

}  // namespace thalweg::cache
