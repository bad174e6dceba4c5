// The blocks of one sequence, in the order of its positions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/id_pool.hpp"
#include "cache/types.hpp"

namespace thalweg::cache {

/// Position p lives in block p / block_tokens of the table. The table owns one reference to each of its
/// blocks and gives them back on truncation and destruction, last block first. One thread.
class BlockTable {
 public:
  /// `pool` must outlive the table.
  explicit BlockTable(IdPool& pool) : pool_(&pool) {}
  ~BlockTable() { truncate(0); }
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  std::span<const BlockId> blocks() const { return blocks_; }
  std::size_t size() const { return blocks_.size(); }

  /// Room for `blocks` without allocation in later calls.
  void reserve(std::size_t blocks) { blocks_.reserve(blocks); }
  /// Takes over the caller's reference.
  void append_owned(BlockId block) { blocks_.push_back(block); }
  /// Adds a reference of its own.
  void append_shared(BlockId block);
  /// Becomes a copy that shares every block of `parent`; this table must be empty.
  void share_all(const BlockTable& parent);
  /// Whether no one else holds the block, so that it may be written.
  bool exclusive(std::size_t index) const { return pool_->references(blocks_[index]) == 1; }
  /// Puts an owned block (the caller's reference) in the place of a shared one, whose reference is given
  /// back.
  void replace(std::size_t index, BlockId owned);
  /// Keeps the first `blocks` blocks.
  void truncate(std::size_t blocks);

 private:
  IdPool* pool_;
  std::vector<BlockId> blocks_;
};

}  // namespace thalweg::cache
