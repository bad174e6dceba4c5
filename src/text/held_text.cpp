#include "text/held_text.hpp"

#include <utility>

namespace thalweg::text {

HeldText::Block::Block(std::string block_text, std::shared_ptr<Block> block_before)
    : text(std::move(block_text)),
      before(std::move(block_before)),
      end(text.size() + (before ? before->end : 0)) {}

// Releases the list in a loop: releasing it link by link would recurse as deep as the list is long.
HeldText::Block::~Block() {
  std::shared_ptr<Block> next = std::move(before);
  while (next && next.use_count() == 1) next = std::exchange(next->before, nullptr);
}

void HeldText::append(std::string_view text) {
  while (tail_.size() + text.size() >= kBlockBytes) {
    const std::size_t room = kBlockBytes - tail_.size();
    tail_.append(text.substr(0, room));
    text.remove_prefix(room);
    blocks_ = std::make_shared<Block>(std::exchange(tail_, {}), std::move(blocks_));
  }
  tail_.append(text);
}

void HeldText::clear() {
  blocks_.reset();
  tail_.clear();
}

std::string HeldText::str() const {
  std::string out((blocks_ ? blocks_->end : 0) + tail_.size(), '\0');
  for (const Block* block = blocks_.get(); block; block = block->before.get()) {
    out.replace(block->end - block->text.size(), block->text.size(), block->text);
  }
  out.replace(out.size() - tail_.size(), tail_.size(), tail_);
  return out;
}

}  // namespace thalweg::text
