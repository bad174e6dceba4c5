#include "text/held_text.hpp"

#include <utility>

namespace thalweg::text {

void HeldText::append(std::string_view text) {
  while (tail_.size() + text.size() >= kBlockBytes) {
    const std::size_t room = kBlockBytes - tail_.size();
    tail_.append(text.substr(0, room));
    text.remove_prefix(room);
    seal_tail();
  }
  tail_.append(text);
}

void HeldText::seal_tail() {
  std::string text = std::exchange(tail_, {});
  std::shared_ptr<const Block> before = std::move(blocks_);
  const std::size_t end = text.size() + (before ? before->end : 0);
  while (before && before->text.size() == text.size()) {
    text.insert(0, before->text);
    before = before->before;
  }
  blocks_ = std::make_shared<const Block>(Block{std::move(text), std::move(before), end});
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
