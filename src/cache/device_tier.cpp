#include "cache/device_tier.hpp"

#include <algorithm>
#include <vector>

namespace thalweg::cache {
namespace {

/// Fills in everything but the payload, which must be there already.
void describe(Record& record, RecordKind kind, const ChainKey& name, const Key128& parent,
              const Content& content) {
  record.tokens.assign(content.tokens.begin(), content.tokens.end());
  record.images.assign(content.images.begin(), content.images.end());
  record.info = {.kind = kind,
                 .name = name,
                 .parent = parent,
                 .token_count = static_cast<std::uint32_t>(content.tokens.size()),
                 .bytes = encoded_bytes(content.tokens.size(), content.images.size(), record.payload.size())};
}

}  // namespace

DeviceTier::DeviceTier(CacheDevice& device, const Geometry& geometry, ReuseMode mode, std::uint32_t blocks,
                       std::uint32_t slots)
    : device_(device),
      geometry_(geometry),
      mode_(mode),
      blocks_(blocks),
      slots_(slots),
      index_(blocks_, geometry.block_tokens),
      snapshots_(slots, geometry.block_tokens) {}

BlockId DeviceTier::allocate_block() {
  for (;;) {
    if (const BlockId block = blocks_.allocate(); block != kNil) return block;
    if (!free_a_block()) return kNil;
  }
}

bool DeviceTier::free_a_block() {
  const BlockId leaf = index_.oldest_leaf();
  const SlotId snapshot = snapshots_.oldest_with_tail();
  if (leaf == kNil && snapshot == kNil) return false;
  if (snapshot != kNil && (leaf == kNil || snapshots_.entry(snapshot).last_use < index_.last_use(leaf))) {
    demote_snapshot(snapshot);
    return true;
  }
  spill_block(leaf);
  index_.evict(leaf);
  ++evicted_blocks_;
  return true;
}

SlotId DeviceTier::allocate_slot() {
  if (slots_.free_count() == 0) {
    const SlotId snapshot = snapshots_.oldest();
    if (snapshot == kNil) return kNil;
    demote_snapshot(snapshot);
  }
  return slots_.allocate();
}

std::uint32_t DeviceTier::available_blocks() const {
  return blocks_.free_count() + index_.unpinned() + snapshots_.evictable_tails();
}

bool DeviceTier::take_snapshot(SlotId slot, BlockId partial, const Key128& parent, const ChainKey& name,
                               const Content& content, std::uint64_t now) {
  const SlotId snapshot = allocate_slot();
  if (snapshot == kNil) return false;
  BlockId tail = kNil;
  if (!content.tokens.empty()) {
    tail = allocate_block();
    if (tail == kNil) {
      slots_.release(snapshot);
      return false;
    }
    device_.copy_block(partial, tail);
  }
  device_.copy_slot(slot, snapshot, SlotSection::encoder);
  if (mode_ == ReuseMode::exact) device_.copy_slot(slot, snapshot, SlotSection::decoder);
  snapshots_.insert(snapshot, parent, name, tail, content, now);
  return true;
}

RecordPtr DeviceTier::demote_snapshot(SlotId snapshot) {
  RecordPtr record = snapshot_record(snapshot);
  if (next_ != nullptr) next_->put(record);
  const BlockId tail = snapshots_.entry(snapshot).tail;
  snapshots_.remove(snapshot);
  slots_.release(snapshot);
  if (tail != kNil) blocks_.release(tail);
  ++evicted_snapshots_;
  return record;
}

void DeviceTier::load_windows(SlotId snapshot, SlotId slot) {
  device_.copy_slot(snapshot, slot, SlotSection::encoder);
  if (mode_ == ReuseMode::exact) device_.copy_slot(snapshot, slot, SlotSection::decoder);
}

void DeviceTier::load_windows(const Record& snapshot, SlotId slot) {
  const std::span<const std::byte> payload(snapshot.payload);
  device_.write_slot(slot, SlotSection::encoder, payload.first(geometry_.encoder_bytes));
  if (mode_ != ReuseMode::exact) return;
  device_.write_slot(slot, SlotSection::decoder,
                     payload.subspan(geometry_.encoder_bytes, geometry_.decoder_bytes));
}

std::span<const std::byte> DeviceTier::tail_of(const Record& snapshot) const {
  return std::span<const std::byte>(snapshot.payload).subspan(window_bytes(), geometry_.block_bytes);
}

bool DeviceTier::well_formed(const Record& record) const {
  if (record.info.kind == RecordKind::block) {
    return record.tokens.size() == geometry_.block_tokens && record.payload.size() == geometry_.block_bytes;
  }
  const std::size_t tail = record.tokens.empty() ? 0 : geometry_.block_bytes;
  return record.tokens.size() < geometry_.block_tokens && record.payload.size() == window_bytes() + tail;
}

void DeviceTier::flush() {
  if (next_ == nullptr) return;
  std::vector<BlockId> nodes;
  for (BlockId id = 1; id <= blocks_.capacity(); ++id) {
    if (index_.contains(id)) nodes.push_back(id);
  }
  // Children before parents: if the tier below is too small for all, it keeps what was put last.
  std::ranges::sort(nodes, [&](BlockId a, BlockId b) { return index_.serial(a) > index_.serial(b); });
  for (SlotId slot = 1; slot <= slots_.capacity(); ++slot) {
    if (snapshots_.entry(slot).present) next_->put(snapshot_record(slot));
  }
  for (const BlockId node : nodes) spill_block(node);
}

void DeviceTier::spill_block(BlockId node) {
  if (next_ == nullptr || next_->touch(index_.name(node))) return;
  auto record = std::make_shared<Record>();
  record->payload.resize(geometry_.block_bytes);
  device_.read_block(node, record->payload);
  describe(*record, RecordKind::block, index_.name(node), index_.parent_key(node), index_.content(node));
  next_->put(record);
}

RecordPtr DeviceTier::snapshot_record(SlotId snapshot) {
  const SnapshotStore::Entry& entry = snapshots_.entry(snapshot);
  auto record = std::make_shared<Record>();
  record->payload.resize(window_bytes() + (entry.tail == kNil ? 0 : geometry_.block_bytes));
  std::span<std::byte> payload(record->payload);
  device_.read_slot(snapshot, SlotSection::encoder, payload.first(geometry_.encoder_bytes));
  if (mode_ == ReuseMode::exact) {
    device_.read_slot(snapshot, SlotSection::decoder,
                      payload.subspan(geometry_.encoder_bytes, geometry_.decoder_bytes));
  }
  if (entry.tail != kNil) device_.read_block(entry.tail, payload.subspan(window_bytes()));
  describe(*record, RecordKind::snapshot, entry.name, entry.parent, snapshots_.content(snapshot));
  return record;
}

std::size_t DeviceTier::window_bytes() const {
  return mode_ == ReuseMode::exact ? geometry_.slot_bytes() : geometry_.encoder_bytes;
}

}  // namespace thalweg::cache
