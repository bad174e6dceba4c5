// The uppermost tier: blocks and slots of the device, shared by running sequences and by cached prefixes.
#pragma once

#include <cstdint>
#include <span>

#include "cache/device.hpp"
#include "cache/id_pool.hpp"
#include "cache/prefix_index.hpp"
#include "cache/snapshot_store.hpp"
#include "cache/tier.hpp"

namespace thalweg::cache {

/// Owns the two pools and what is cached in them. Running sequences come first: a block or slot that only
/// cached prefixes hold is taken from them when the pools are empty, oldest use first, and the record moves
/// to the tier below. One thread.
class DeviceTier {
 public:
  /// `blocks` and `slots` count the reserved id 0. `device` must outlive this object.
  DeviceTier(CacheDevice& device, const Geometry& geometry, ReuseMode mode, std::uint32_t blocks,
             std::uint32_t slots);

  /// Where evicted records go; null: nowhere.
  void set_next(Tier* next) { next_ = next; }

  /// A block or slot with one reference, after evicting what must be; kNil when sequences (and held
  /// snapshots) have everything.
  BlockId allocate_block();
  SlotId allocate_slot();
  /// At most this many blocks can be had by `allocate_block`.
  std::uint32_t available_blocks() const;
  bool slot_available() const { return slots_.free_count() > 0 || snapshots_.size() > 0; }

  /// Copies the windows of a running sequence, and its last block if that is partly filled, into a new
  /// snapshot. False when there is no room.
  bool take_snapshot(SlotId slot, BlockId partial, const Key128& parent, const ChainKey& name,
                     const Content& content, std::uint64_t now);
  /// Removes a snapshot (held or not) from the device and returns its record, which the tier below has too.
  RecordPtr demote_snapshot(SlotId snapshot);
  /// Puts a snapshot's windows into a cleared slot; in replay mode the encoder section only.
  void load_windows(SlotId snapshot, SlotId slot);
  void load_windows(const Record& snapshot, SlotId slot);
  /// The block that a snapshot's record carries.
  std::span<const std::byte> tail_of(const Record& snapshot) const;
  /// Whether the record has the payload that its kind and token count demand.
  bool well_formed(const Record& record) const;

  /// Copies everything cached to the tier below.
  void flush();

  CacheDevice& device() { return device_; }
  const Geometry& geometry() const { return geometry_; }
  IdPool& blocks() { return blocks_; }
  IdPool& slots() { return slots_; }
  PrefixIndex& index() { return index_; }
  SnapshotStore& snapshots() { return snapshots_; }
  std::uint64_t evicted_blocks() const { return evicted_blocks_; }
  std::uint64_t evicted_snapshots() const { return evicted_snapshots_; }

 private:
  bool free_a_block();
  void spill_block(BlockId node);
  RecordPtr snapshot_record(SlotId snapshot);
  std::size_t window_bytes() const;

  CacheDevice& device_;
  Geometry geometry_;
  ReuseMode mode_;
  IdPool blocks_;
  IdPool slots_;
  PrefixIndex index_;
  SnapshotStore snapshots_;
  Tier* next_ = nullptr;
  std::uint64_t evicted_blocks_ = 0;
  std::uint64_t evicted_snapshots_ = 0;
};

}  // namespace thalweg::cache
