// The prefixes held on the device: a tree of full blocks, found by chained keys.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/id_pool.hpp"
#include "cache/key_table.hpp"
#include "cache/lru_list.hpp"
#include "cache/prefix_key.hpp"
#include "cache/tier.hpp"
#include "cache/types.hpp"

namespace thalweg::cache {

/// A node is an indexed block and is named by its id; kNil stands for the root of every tenant. The index
/// holds one reference to each node's block, and a node's parent is always indexed too. Pinned nodes are in
/// use by sequences; a pin on a node pins all its ancestors. Unpinned nodes without children can be evicted,
/// oldest use first. All memory is taken at construction (images and continuation counts aside). One thread.
class PrefixIndex {
 public:
  /// `pool` must outlive the index.
  PrefixIndex(IdPool& pool, std::uint32_t block_tokens);

  /// The node of this name below `parent` with exactly this content, or kNil.
  BlockId find(BlockId parent, const ChainKey& name, const Content& content) const;
  /// Makes `block` a node and adds the index's own reference. No equal node may exist.
  void insert(BlockId parent, const Key128& parent_key, const ChainKey& name, BlockId block,
              const Content& content, std::uint64_t now);

  /// Pins a path. O(depth).
  void pin(BlockId node);
  /// Adds a pin to `child` alone, for the holder of a pin on its parent: the pin now is on the child.
  void advance_pin(BlockId child);
  /// Gives a pin back; the whole path counts as used at `now`. O(depth).
  void unpin(BlockId node, std::uint64_t now);

  /// The node to evict first, or kNil.
  BlockId oldest_leaf() const { return leaves_.oldest(); }
  std::uint64_t last_use(BlockId leaf) const { return leaves_.last_use(leaf); }
  /// Removes a node that `oldest_leaf` named and gives back the index's reference. True if that freed the
  /// block; a sequence forked before the block was indexed may still have it in its table.
  bool evict(BlockId leaf);

  bool contains(BlockId node) const { return nodes_[node].serial != 0; }
  BlockId parent(BlockId node) const { return nodes_[node].parent; }
  const ChainKey& name(BlockId node) const { return nodes_[node].name; }
  const Key128& parent_key(BlockId node) const { return nodes_[node].parent_key; }
  /// Never reused: tells whether a block still is the node it once was.
  std::uint64_t serial(BlockId node) const { return nodes_[node].serial; }
  Content content(BlockId node) const;
  std::uint32_t pins(BlockId node) const { return nodes_[node].pins; }
  std::uint32_t size() const { return size_; }
  /// Nodes that eviction can free, one after the other.
  std::uint32_t unpinned() const { return unpinned_; }
  const Continuations& continuations() const { return continuations_; }

  /// Throws BrokenInvariant if tree, lists and counts disagree. O(capacity).
  void check_invariants() const;

 private:
  struct Node {
    ChainKey name;
    Key128 parent_key;
    BlockId parent = kNil;
    std::uint32_t children = 0;
    std::uint32_t pins = 0;
    std::uint64_t serial = 0;  // 0: not a node
    std::uint64_t last_use = 0;
    std::vector<ImageSpan> images;
  };
  void list_if_evictable(BlockId node);

  IdPool& pool_;
  std::uint32_t block_tokens_;
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;  // [block][block_tokens]
  KeyTable table_;
  LruList leaves_;
  Continuations continuations_;
  std::uint64_t next_serial_ = 1;
  std::uint32_t size_ = 0;
  std::uint32_t unpinned_ = 0;
};

}  // namespace thalweg::cache
