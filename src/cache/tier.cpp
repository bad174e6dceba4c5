#include "cache/tier.hpp"

#include <algorithm>
#include <iterator>

namespace thalweg::cache {

void Continuations::add(RecordKind kind, const Key128& parent, std::uint32_t token_count) {
  Counts& counts = counts_[parent];
  if (kind == RecordKind::block) {
    ++counts.blocks;
  } else {
    ++counts.snapshots[token_count];
  }
}

void Continuations::remove(RecordKind kind, const Key128& parent, std::uint32_t token_count) {
  const auto found = counts_.find(parent);
  check(found != counts_.end(), "removed a continuation that was never added");
  Counts& counts = found->second;
  if (kind == RecordKind::block) {
    check(counts.blocks > 0, "removed a block continuation that was never added");
    --counts.blocks;
  } else {
    const auto tail = counts.snapshots.find(token_count);
    check(tail != counts.snapshots.end(), "removed a snapshot continuation that was never added");
    if (--tail->second == 0) counts.snapshots.erase(tail);
  }
  if (counts.blocks == 0 && counts.snapshots.empty()) counts_.erase(found);
}

bool Continuations::go_beyond(const Key128& parent, std::uint32_t tail) const {
  const auto found = counts_.find(parent);
  if (found == counts_.end()) return false;
  return found->second.blocks > 0 ||
         std::ranges::any_of(found->second.snapshots, [&](const auto& entry) { return entry.first > tail; });
}

void Continuations::mark_snapshots(const Key128& parent, std::vector<bool>& tails) const {
  const auto found = counts_.find(parent);
  if (found == counts_.end()) return;
  for (const auto& [tail, count] : found->second.snapshots) {
    if (tail < tails.size()) tails[tail] = true;
  }
}

bool Tier::contains(const ChainKey& name) const {
  const auto found = places_.find(name.key);
  return found != places_.end() && found->second->name == name;
}

bool Tier::touch(const ChainKey& name) {
  if (!contains(name)) return false;
  order_.splice(order_.end(), order_, places_.at(name.key));
  return true;
}

void Tier::put(const RecordPtr& record) {
  const RecordInfo& info = record->info;
  if (touch(info.name)) return;
  erase(info.name.key);
  if (!make_room(info.bytes)) {
    if (next_ != nullptr) next_->put(record);
    return;
  }
  if (!store(record)) return;
  adopt(info);
  ++statistics_.stored;
}

RecordPtr Tier::get(const ChainKey& name) {
  if (!contains(name)) return nullptr;
  const Place place = places_.at(name.key);
  RecordPtr record = load(*place);
  if (record == nullptr) {
    count_lost();
    forget(place);
    return nullptr;
  }
  order_.splice(order_.end(), order_, place);
  ++statistics_.hits;
  return record;
}

void Tier::erase(const Key128& key) {
  if (const auto found = places_.find(key); found != places_.end()) forget(found->second);
}

void Tier::flush() {
  if (next_ == nullptr) return;
  // Oldest first, so that the next tier has them in the same order.
  for (const RecordInfo& info : order_) {
    if (const RecordPtr record = load(info)) next_->put(record);
  }
}

bool Tier::reserve(std::size_t bytes) {
  if (!make_room(bytes)) return false;
  reserved_ += bytes;
  return true;
}

void Tier::unreserve(std::size_t bytes) {
  check(bytes <= reserved_, "more bytes given back than were reserved");
  reserved_ -= bytes;
}

TierStatistics Tier::statistics() const {
  TierStatistics statistics = statistics_;
  statistics.bytes = used_;
  statistics.records = order_.size();
  return statistics;
}

void Tier::check_invariants() const {
  std::size_t bytes = 0;
  for (const RecordInfo& info : order_) {
    bytes += info.bytes;
    const auto found = places_.find(info.name.key);
    check(found != places_.end() && &*found->second == &info, "a tier's record is not findable");
  }
  check(places_.size() == order_.size(), "a tier finds records that it does not have");
  check(bytes == used_ && used_ + reserved_ <= budget_, "a tier's bytes do not add up or exceed the budget");
}

void Tier::adopt(const RecordInfo& info) {
  erase(info.name.key);
  order_.push_back(info);
  places_[info.name.key] = std::prev(order_.end());
  continuations_.add(info.kind, info.parent, info.token_count);
  used_ += info.bytes;
}

bool Tier::make_room(std::size_t bytes) {
  if (bytes > budget_ || reserved_ > budget_ - bytes) return false;
  while (used_ > budget_ - reserved_ - bytes) {
    const Place victim = order_.begin();
    if (next_ != nullptr && !next_->contains(victim->name)) {
      if (const RecordPtr record = load(*victim)) next_->put(record);
    }
    ++statistics_.evicted;
    forget(victim);
  }
  return true;
}

void Tier::forget(Place place) {
  drop(*place);
  continuations_.remove(place->kind, place->parent, place->token_count);
  used_ -= place->bytes;
  places_.erase(place->name.key);
  order_.erase(place);
}

}  // namespace thalweg::cache
