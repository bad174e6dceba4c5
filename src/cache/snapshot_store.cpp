#include "cache/snapshot_store.hpp"

#include <algorithm>

namespace thalweg::cache {

SnapshotStore::SnapshotStore(std::uint32_t slots, std::uint32_t block_tokens)
    : block_tokens_(block_tokens),
      entries_(slots),
      tokens_(std::size_t{slots} * block_tokens),
      table_(slots),
      without_tail_(slots),
      with_tail_(slots) {}

SlotId SnapshotStore::find(const ChainKey& name, const Content& content) const {
  for (SlotId slot = table_.first(name.key); slot != kNil; slot = table_.next(slot)) {
    if (entries_[slot].name == name && this->content(slot) == content) return slot;
  }
  return kNil;
}

void SnapshotStore::insert(SlotId slot, const Key128& parent, const ChainKey& name, BlockId tail,
                           const Content& content, std::uint64_t now) {
  check(slot != kNil && !entries_[slot].present, "a slot holds two snapshots");
  check(content.tokens.size() < block_tokens_ && content.tokens.empty() == (tail == kNil),
        "a snapshot's tail is not its tokens");
  Entry& entry = entries_[slot];
  entry = {.name = name,
           .parent = parent,
           .tail = tail,
           .token_count = static_cast<std::uint32_t>(content.tokens.size()),
           .present = true,
           .held = true,
           .images = {content.images.begin(), content.images.end()}};
  std::ranges::copy(content.tokens,
                    tokens_.begin() + static_cast<std::ptrdiff_t>(std::size_t{slot} * block_tokens_));
  table_.insert(name.key, slot);
  continuations_.add(RecordKind::snapshot, parent, entry.token_count);
  ++size_;
  unhold(slot, now);
}

void SnapshotStore::remove(SlotId slot) {
  check(slot < entries_.size() && entries_[slot].present, "removed a snapshot that is not there");
  if (!entries_[slot].held) hold(slot);
  Entry& entry = entries_[slot];
  table_.erase(entry.name.key, slot);
  continuations_.remove(RecordKind::snapshot, entry.parent, entry.token_count);
  entry = {};
  --size_;
}

void SnapshotStore::hold(SlotId slot) {
  Entry& entry = entries_[slot];
  check(entry.present && !entry.held, "held a snapshot twice");
  list_of(entry).erase(slot);
  entry.held = true;
  if (entry.tail != kNil) --evictable_tails_;
}

void SnapshotStore::unhold(SlotId slot, std::uint64_t now) {
  Entry& entry = entries_[slot];
  check(entry.present && entry.held, "let go a snapshot that was not held");
  entry.held = false;
  entry.last_use = now;
  list_of(entry).insert(slot, now);
  if (entry.tail != kNil) ++evictable_tails_;
}

void SnapshotStore::touch(SlotId slot, std::uint64_t now) {
  hold(slot);
  unhold(slot, now);
}

SlotId SnapshotStore::oldest() const {
  const SlotId plain = without_tail_.oldest();
  const SlotId tailed = with_tail_.oldest();
  if (plain == kNil || tailed == kNil) return plain == kNil ? tailed : plain;
  return entries_[plain].last_use <= entries_[tailed].last_use ? plain : tailed;
}

Content SnapshotStore::content(SlotId slot) const {
  const Entry& entry = entries_[slot];
  return {std::span(tokens_).subspan(std::size_t{slot} * block_tokens_, entry.token_count), entry.images};
}

void SnapshotStore::check_invariants() const {
  std::uint32_t size = 0;
  std::uint32_t tails = 0;
  for (SlotId slot = 1; slot < entries_.size(); ++slot) {
    const Entry& entry = entries_[slot];
    const bool listed_plain = without_tail_.contains(slot);
    const bool listed_tailed = with_tail_.contains(slot);
    if (!entry.present) {
      check(!listed_plain && !listed_tailed, "a slot without a snapshot waits for eviction");
      continue;
    }
    ++size;
    tails += !entry.held && entry.tail != kNil ? 1 : 0;
    check(listed_plain == (!entry.held && entry.tail == kNil), "an aligned snapshot is in the wrong list");
    check(listed_tailed == (!entry.held && entry.tail != kNil),
          "a snapshot with a tail is in the wrong list");
    check(find(entry.name, content(slot)) != kNil, "a snapshot is not findable");
  }
  check(size == size_ && tails == evictable_tails_, "the snapshot store's counts are wrong");
}

}  // namespace thalweg::cache
