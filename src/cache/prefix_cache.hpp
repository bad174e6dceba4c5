// The cache as the scheduler sees it: sequences with their blocks and slot, and prefixes that later prompts
// resume at.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/block_table.hpp"
#include "cache/device_tier.hpp"
#include "cache/disk_tier.hpp"
#include "cache/host_tier.hpp"
#include "cache/lookup.hpp"
#include "cache/prefix_key.hpp"

namespace thalweg::cache {

struct CacheConfig {
  Geometry geometry;
  Namespace name;
  std::uint32_t blocks = 0;  ///< device blocks, the reserved block 0 included
  std::uint32_t slots = 0;   ///< device slots, the reserved slot 0 included; those not running hold snapshots
  std::size_t host_bytes = 0;         ///< 0: no host tier (and no saving of preempted sequences)
  std::filesystem::path disk_folder;  ///< empty: no disk tier
  std::size_t disk_bytes = 0;
  DiskTier::Report report;           ///< receives one line if the disk tier fails
  HashFunction key_hash = xxh3_128;  ///< changed only by tests
};

struct CacheStatistics {
  std::uint64_t prompts = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t reused_tokens = 0;
  std::uint64_t reused_from_host = 0;
  std::uint64_t reused_from_disk = 0;
  std::uint64_t replayed_tokens = 0;
  std::array<std::uint64_t, kCuts> cuts{};  ///< by Cut
  std::uint64_t snapshots_taken = 0;
  std::uint64_t snapshots_skipped = 0;  ///< no slot or block was to be had
  std::uint64_t copies_on_write = 0;
  std::uint64_t evicted_blocks = 0;     ///< from the device
  std::uint64_t evicted_snapshots = 0;  ///< from the device
  std::uint64_t saved_sequences = 0;
  std::uint64_t restored_sequences = 0;
  TierStatistics host;
  TierStatistics disk;
};

class PrefixCache;

/// A running sequence's place on the device. Destroying it gives everything back: what was published stays
/// cached. Destroy it only when no launched step refers to its blocks or slot. Must not outlive its cache.
class Sequence {
 public:
  Sequence() = default;
  ~Sequence() { reset(); }
  Sequence(Sequence&& other) noexcept : cache_(std::exchange(other.cache_, nullptr)), slot_(other.slot_) {}
  Sequence& operator=(Sequence&& other) noexcept;

  explicit operator bool() const { return cache_ != nullptr; }
  SlotId slot() const { return slot_; }
  /// Position p lies in block p / block_tokens.
  std::span<const BlockId> blocks() const;
  void reset();

 private:
  friend class PrefixCache;
  Sequence(PrefixCache& cache, SlotId slot) : cache_(&cache), slot_(slot) {}

  PrefixCache* cache_ = nullptr;
  SlotId slot_ = kNil;
};

/// A preempted sequence in host memory. Must not outlive its cache.
class SavedSequence {
 public:
  SavedSequence(SavedSequence&& other) noexcept = default;
  SavedSequence& operator=(SavedSequence&& other) noexcept = default;
  std::size_t bytes() const { return blocks_.size() + slot_.size(); }

 private:
  friend class PrefixCache;
  /// Gives the bytes back to the host tier's budget.
  struct Reservation {
    std::size_t bytes;
    void operator()(Tier* tier) const { tier->unreserve(bytes); }
  };
  /// A block that the index had when the sequence was saved; shared again if it still is the same node.
  struct Indexed {
    BlockId block;
    std::uint64_t serial;
  };
  SavedSequence(Tier* host, std::size_t bytes) : reservation_(host, Reservation{bytes}) {}

  std::unique_ptr<Tier, Reservation> reservation_;
  ChainKey root_;
  std::vector<Indexed> indexed_;
  std::vector<std::byte> blocks_;
  std::vector<std::byte> slot_;  // encoder section, decoder section
};

struct Admission {
  Sequence sequence;
  Hit hit;
};

/// One scheduler thread calls everything. A step of a sequence goes: `reserve` the rows to be written,
/// launch, and when tokens are final `publish` them. Nothing here waits but the disk tier, and the device
/// when records are moved to another tier. Broken rules throw BrokenInvariant; a lack of blocks or slots is a
/// return value.
class PrefixCache {
 public:
  /// `device` must outlive the cache. Throws UsageError for sizes that cannot work.
  PrefixCache(const CacheConfig& config, CacheDevice& device);
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  /// Starts a sequence: slot and blocks hold the state after `hit.resume_at` tokens of the prompt; its blocks
  /// so far are ceil(resume_at / block_tokens). Nothing when running sequences have all slots.
  std::optional<Admission> acquire(const Prompt& prompt);
  /// What `acquire` would find, without touching anything.
  Hit peek(const Prompt& prompt);
  /// How far `available_blocks` falls if the prompt is acquired, or the sequence restored, and reserved up to
  /// `tokens` positions: blocks that running sequences hold already are shared for nothing.
  std::uint32_t blocks_to_start(const Prompt& prompt, std::int64_t tokens);
  std::uint32_t blocks_to_restore(const SavedSequence& saved, std::int64_t tokens);

  /// How far `available_blocks` rises if all these sequences end: blocks that others hold too stay theirs.
  std::uint32_t blocks_freed(std::span<const Sequence* const> sequences);

  /// Makes positions [begin, end) writable: the table reaches to `end`, and blocks that others share are
  /// replaced by copies. False when blocks run out; what was had until then is kept, and the call may be
  /// repeated.
  bool reserve(Sequence& sequence, std::int64_t begin, std::int64_t end);
  /// Gives back the blocks beyond `tokens` positions (after drafts were rejected). Not below what was
  /// published.
  void truncate(Sequence& sequence, std::int64_t tokens);
  /// Makes the full blocks of the first `computed` tokens findable. With `snapshot`, also stores the windows,
  /// so that a prompt can resume at exactly `computed`: the slot must be in the state after `computed`
  /// tokens. Best effort: without room for a snapshot there is none. `content` begins with the sequence's
  /// tokens.
  void publish(Sequence& sequence, const Content& content, std::int64_t computed, bool snapshot);
  /// A second sequence in the same state, sharing all blocks (n > 1). Nothing when there is no slot.
  std::optional<Sequence> fork(const Sequence& parent);

  /// Moves a sequence of `computed` tokens to host memory and ends it. Nothing (and the sequence goes on)
  /// when the host budget does not allow it: then it must be computed again.
  std::optional<SavedSequence> save(Sequence& sequence, std::int64_t computed);
  /// The sequence again, bit for bit, in other blocks and another slot. Nothing (and `saved` stays valid)
  /// when blocks or slots are short.
  std::optional<Sequence> restore(SavedSequence& saved);

  /// Copies everything cached down to the lowest tier, as before an orderly shutdown.
  void flush();

  /// At most this many blocks can be had for sequences now; cached prefixes count as free.
  std::uint32_t available_blocks() const { return device_.available_blocks(); }
  CacheStatistics statistics() const;
  /// Counts every reference and list; throws BrokenInvariant. O(pool), allocates: for tests and idle times.
  void check_invariants();
  /// References to a block: tables, index and snapshots.
  std::uint32_t references(BlockId block) { return device_.blocks().references(block); }

 private:
  friend class Sequence;
  /// Cache-side state of a running sequence; lives at its slot's id.
  struct State {
    explicit State(IdPool& pool) : table(pool) {}
    BlockTable table;
    ChainKey root;
    BlockId node = kNil;      // pinned: the deepest indexed block of its content
    std::size_t indexed = 0;  // depth of `node`
    bool running = false;
  };
  /// What a resumed sequence starts with besides its shared blocks.
  struct Start {
    SlotId slot = kNil;
    BlockId tail = kNil;  // its own copy of a partly filled block
  };

  std::optional<BlockId> pin_path(std::size_t depth, Hit& brought);
  std::optional<Start> start_at(const Candidate& candidate, Hit& brought);
  std::optional<Start> make_room_to_start(SlotId& snapshot, RecordPtr& record, bool with_tail);
  RecordPtr fetch(const ChainKey& name, const Content& content, Hit& brought);
  void count(const Prompt& prompt, const Hit& hit);

  State& state_of(const Sequence& sequence);
  State& occupy(SlotId slot, const ChainKey& root);
  void release(SlotId slot);
  void index_blocks(State& state, const Content& content, std::size_t blocks);
  void snapshot(State& state, SlotId slot, const Content& content, std::int64_t computed);
  bool bring_back(State& state, const SavedSequence& saved);
  const ChainKey& name_of(const State& state);
  std::vector<Tier*> lower_tiers() const;
  std::uint32_t block_tokens() const { return device_.geometry().block_tokens; }
  std::size_t blocks_for(std::int64_t tokens) const;
  std::uint32_t blocks_beside(std::int64_t tokens, std::size_t shared) const;

  KeyChain keys_;
  std::unique_ptr<DiskTier> disk_;  // outlives the host tier, which spills into it
  std::unique_ptr<HostTier> host_;
  DeviceTier device_;
  Lookup lookup_;
  std::deque<State> states_;       // by slot
  std::vector<ImageSpan> images_;  // of the slice last taken
  std::uint64_t now_ = 0;          // counts calls that use records
  CacheStatistics statistics_;
};

}  // namespace thalweg::cache
