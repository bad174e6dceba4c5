#include "cache/id_pool.hpp"

namespace thalweg::cache {

IdPool::IdPool(std::uint32_t records) : entries_(records) {
  check(records >= 2, "a pool needs a record besides the reserved one");
  for (std::uint32_t id = 1; id < records; ++id) entries_[id].next_free = id + 1 < records ? id + 1 : kNil;
  head_ = 1;
  tail_ = records - 1;
  free_ = records - 1;
}

std::uint32_t IdPool::allocate() {
  if (head_ == kNil) return kNil;
  const std::uint32_t id = head_;
  Entry& entry = entries_[id];
  check(entry.references == 0, "the free list holds a record in use");
  head_ = entry.next_free;
  if (head_ == kNil) tail_ = kNil;
  entry = {.references = 1, .next_free = kNil};
  --free_;
  return id;
}

IdPool::Entry& IdPool::entry_in_use(std::uint32_t id, const char* rule) {
  check(id != kNil && id < entries_.size(), "record id out of range");
  check(entries_[id].references > 0, rule);
  return entries_[id];
}

void IdPool::retain(std::uint32_t id) {
  ++entry_in_use(id, "retained a free record").references;
}

bool IdPool::release(std::uint32_t id) {
  Entry& entry = entry_in_use(id, "released a free record");
  if (--entry.references > 0) return false;
  if (tail_ == kNil) {
    head_ = id;
  } else {
    entries_[tail_].next_free = id;
  }
  tail_ = id;
  ++free_;
  return true;
}

std::uint32_t IdPool::references(std::uint32_t id) const {
  check(id < entries_.size(), "record id out of range");
  return entries_[id].references;
}

void IdPool::check_invariants() const {
  std::vector<bool> listed(entries_.size());
  std::uint32_t length = 0;
  std::uint32_t last = kNil;
  for (std::uint32_t id = head_; id != kNil; id = entries_[id].next_free) {
    check(id < entries_.size() && !listed[id], "the free list is not a list of distinct ids");
    check(entries_[id].references == 0, "a free record has references");
    listed[id] = true;
    last = id;
    ++length;
  }
  check(length == free_ && last == tail_, "the free list's length or tail is wrong");
  check(entries_[kNil].references == 0 && !listed[kNil], "the reserved record was handed out");
  for (std::uint32_t id = 1; id < entries_.size(); ++id) {
    check(listed[id] != (entries_[id].references > 0), "a record is neither free nor counted");
  }
}

}  // namespace thalweg::cache
