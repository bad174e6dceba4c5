#include "cache/prefix_index.hpp"

#include <algorithm>

namespace thalweg::cache {

PrefixIndex::PrefixIndex(IdPool& pool, std::uint32_t block_tokens)
    : pool_(pool),
      block_tokens_(block_tokens),
      nodes_(pool.capacity() + 1),
      tokens_(std::size_t{pool.capacity() + 1} * block_tokens),
      table_(pool.capacity() + 1),
      leaves_(pool.capacity() + 1) {}

BlockId PrefixIndex::find(BlockId parent, const ChainKey& name, const Content& content) const {
  for (BlockId id = table_.first(name.key); id != kNil; id = table_.next(id)) {
    if (nodes_[id].name == name && nodes_[id].parent == parent && this->content(id) == content) return id;
  }
  return kNil;
}

void PrefixIndex::insert(BlockId parent, const Key128& parent_key, const ChainKey& name, BlockId block,
                         const Content& content, std::uint64_t now) {
  check(block != kNil && !contains(block), "a block was indexed twice");
  check(parent == kNil || contains(parent), "a node's parent is not indexed");
  check(content.tokens.size() == block_tokens_, "only full blocks are indexed");
  pool_.retain(block);
  Node& node = nodes_[block];
  node.name = name;
  node.parent_key = parent_key;
  node.parent = parent;
  node.serial = next_serial_++;
  node.last_use = now;
  node.images.assign(content.images.begin(), content.images.end());
  std::ranges::copy(content.tokens,
                    tokens_.begin() + static_cast<std::ptrdiff_t>(std::size_t{block} * block_tokens_));
  table_.insert(name.key, block);
  continuations_.add(RecordKind::block, parent_key, block_tokens_);
  ++size_;
  ++unpinned_;
  list_if_evictable(block);
  if (parent == kNil) return;
  ++nodes_[parent].children;
  if (leaves_.contains(parent)) leaves_.erase(parent);
}

void PrefixIndex::pin(BlockId node) {
  for (; node != kNil; node = nodes_[node].parent) advance_pin(node);
}

void PrefixIndex::advance_pin(BlockId child) {
  check(contains(child), "pinned a block that is not indexed");
  if (leaves_.contains(child)) leaves_.erase(child);
  if (nodes_[child].pins++ == 0) --unpinned_;
}

void PrefixIndex::unpin(BlockId node, std::uint64_t now) {
  for (; node != kNil; node = nodes_[node].parent) {
    check(contains(node) && nodes_[node].pins > 0, "unpinned a node without pins");
    nodes_[node].last_use = now;
    if (--nodes_[node].pins == 0) {
      ++unpinned_;
      list_if_evictable(node);
    }
  }
}

bool PrefixIndex::evict(BlockId leaf) {
  check(leaves_.contains(leaf), "evicted a node that is in use");
  leaves_.erase(leaf);
  Node& node = nodes_[leaf];
  table_.erase(node.name.key, leaf);
  continuations_.remove(RecordKind::block, node.parent_key, block_tokens_);
  const BlockId parent = node.parent;
  node = {};
  --size_;
  --unpinned_;
  if (parent != kNil) {
    --nodes_[parent].children;
    list_if_evictable(parent);
  }
  return pool_.release(leaf);
}

Content PrefixIndex::content(BlockId node) const {
  return {std::span(tokens_).subspan(std::size_t{node} * block_tokens_, block_tokens_), nodes_[node].images};
}

void PrefixIndex::list_if_evictable(BlockId node) {
  if (nodes_[node].pins == 0 && nodes_[node].children == 0) leaves_.insert(node, nodes_[node].last_use);
}

void PrefixIndex::check_invariants() const {
  std::vector<std::uint32_t> children(nodes_.size());
  std::vector<std::uint32_t> child_pins(nodes_.size());
  std::uint32_t size = 0;
  std::uint32_t unpinned = 0;
  for (BlockId id = 1; id < nodes_.size(); ++id) {
    const Node& node = nodes_[id];
    if (node.serial == 0) {
      check(!leaves_.contains(id), "a block that is not indexed waits for eviction");
      continue;
    }
    ++size;
    unpinned += node.pins == 0 ? 1 : 0;
    check(node.parent == kNil || contains(node.parent), "a node's parent is not indexed");
    check(find(node.parent, node.name, content(id)) == id, "an indexed block is not findable");
    ++children[node.parent];
    child_pins[node.parent] += node.pins;
  }
  check(size == size_ && unpinned == unpinned_, "the index's counts are wrong");
  for (BlockId id = 1; id < nodes_.size(); ++id) {
    if (!contains(id)) continue;
    check(children[id] == nodes_[id].children, "a node's child count is wrong");
    check(nodes_[id].pins >= child_pins[id], "a node has fewer pins than its children");
    const bool evictable = nodes_[id].pins == 0 && nodes_[id].children == 0;
    check(leaves_.contains(id) == evictable, "eviction list and tree disagree");
  }
}

}  // namespace thalweg::cache
