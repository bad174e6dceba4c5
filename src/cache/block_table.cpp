#include "cache/block_table.hpp"

namespace thalweg::cache {

void BlockTable::append_shared(BlockId block) {
  pool_->retain(block);
  blocks_.push_back(block);
}

void BlockTable::share_all(const BlockTable& parent) {
  check(blocks_.empty(), "a table that shares another's blocks must be empty");
  for (const BlockId block : parent.blocks()) append_shared(block);
}

void BlockTable::replace(std::size_t index, BlockId owned) {
  check(index < blocks_.size(), "table index out of range");
  pool_->release(blocks_[index]);
  blocks_[index] = owned;
}

void BlockTable::truncate(std::size_t blocks) {
  while (blocks_.size() > blocks) {
    pool_->release(blocks_.back());
    blocks_.pop_back();
  }
}

}  // namespace thalweg::cache
