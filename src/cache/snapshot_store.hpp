// The window snapshots held on the device: a slot each, and a block for the part of a block before the
// position.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/key_table.hpp"
#include "cache/lru_list.hpp"
#include "cache/prefix_key.hpp"
#include "cache/tier.hpp"
#include "cache/types.hpp"

namespace thalweg::cache {

/// A snapshot is named by the slot that holds its windows. The store owns one reference to that slot and one
/// to the tail block, but returns neither: whoever removes a snapshot takes both over. All memory is taken at
/// construction (images and continuation counts aside). One thread.
class SnapshotStore {
 public:
  /// `slots` and `block_tokens` as in the slot pool and the geometry.
  SnapshotStore(std::uint32_t slots, std::uint32_t block_tokens);

  /// A snapshot `token_count` tokens (fewer than a block) beyond the prefix `parent`. `tail` is kNil if there
  /// are none.
  struct Entry {
    ChainKey name;
    Key128 parent;
    BlockId tail = kNil;
    std::uint32_t token_count = 0;
    bool present = false;
    bool held = false;
    std::uint64_t last_use = 0;
    std::vector<ImageSpan> images;
  };

  SlotId find(const ChainKey& name, const Content& content) const;
  void insert(SlotId slot, const Key128& parent, const ChainKey& name, BlockId tail, const Content& content,
              std::uint64_t now);
  /// Forgets the snapshot; slot and tail block are the caller's now.
  void remove(SlotId slot);

  /// A held snapshot is not offered for eviction.
  void hold(SlotId slot);
  void unhold(SlotId slot, std::uint64_t now);
  void touch(SlotId slot, std::uint64_t now);

  /// The snapshot to evict first for its slot, or kNil.
  SlotId oldest() const;
  /// The snapshot to evict first for its tail block, or kNil.
  SlotId oldest_with_tail() const { return with_tail_.oldest(); }

  const Entry& entry(SlotId slot) const { return entries_[slot]; }
  Content content(SlotId slot) const;
  std::uint32_t size() const { return size_; }
  /// Tail blocks that eviction can free.
  std::uint32_t evictable_tails() const { return evictable_tails_; }
  const Continuations& continuations() const { return continuations_; }

  void check_invariants() const;

 private:
  LruList& list_of(const Entry& entry) { return entry.tail == kNil ? without_tail_ : with_tail_; }

  std::uint32_t block_tokens_;
  std::vector<Entry> entries_;
  std::vector<TokenId> tokens_;  // [slot][block_tokens]
  KeyTable table_;
  LruList without_tail_;
  LruList with_tail_;
  Continuations continuations_;
  std::uint32_t size_ = 0;
  std::uint32_t evictable_tails_ = 0;
};

}  // namespace thalweg::cache
