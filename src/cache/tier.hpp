// A store of records below the device: host memory, disk, and what else may follow, behind one interface.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/record.hpp"

namespace thalweg::cache {

/// For every prefix, how many records continue it: full blocks, and snapshots by how many tokens they lie
/// beyond it. Lets a lookup try only the snapshot positions that exist.
class Continuations {
 public:
  void add(RecordKind kind, const Key128& parent, std::uint32_t token_count);
  void remove(RecordKind kind, const Key128& parent, std::uint32_t token_count);
  /// Whether anything is cached that goes on beyond `tail` tokens after `parent`.
  bool go_beyond(const Key128& parent, std::uint32_t tail) const;
  /// Sets tails[t] where a snapshot lies t tokens beyond `parent`. `tails` is long enough for any t.
  void mark_snapshots(const Key128& parent, std::vector<bool>& tails) const;

 private:
  struct Counts {
    std::uint32_t blocks = 0;
    std::unordered_map<std::uint32_t, std::uint32_t> snapshots;  // tail length -> count
  };
  std::unordered_map<Key128, Counts, Key128Hash> counts_;
};

struct TierStatistics {
  std::uint64_t bytes = 0;    ///< held now
  std::uint64_t records = 0;  ///< held now
  std::uint64_t stored = 0;
  std::uint64_t hits = 0;
  std::uint64_t lost = 0;  ///< records found torn, foreign or changed, and removed
  std::uint64_t evicted = 0;
};

/// Records by key under a byte budget, least recently used evicted first, into the next tier if there is one.
/// Failing to store or load is no error: the record is simply not there. One thread.
class Tier {
 public:
  Tier(std::string name, std::size_t budget_bytes) : name_(std::move(name)), budget_(budget_bytes) {}
  virtual ~Tier() = default;
  Tier(const Tier&) = delete;
  Tier& operator=(const Tier&) = delete;

  /// Where evicted records go; must outlive this tier or be reset.
  void set_next(Tier* next) { next_ = next; }
  const std::string& name() const { return name_; }

  /// Whether a record of this name was stored and not evicted since; it may still turn out to be lost.
  bool contains(const ChainKey& name) const;
  /// As `contains`, and marks the record used.
  bool touch(const ChainKey& name);
  /// Stores the record, or only marks it used if it is there. Another record under the same key is replaced.
  void put(const RecordPtr& record);
  /// Null: a miss. The record is whole and has this name; tokens are the caller's to compare.
  RecordPtr get(const ChainKey& name);
  void erase(const Key128& key);
  /// Hands every record to the next tier, as before an orderly shutdown.
  void flush();

  /// Takes `bytes` of the budget for other use, evicting records; false if they cannot be had.
  bool reserve(std::size_t bytes);
  void unreserve(std::size_t bytes);

  const Continuations& continuations() const { return continuations_; }
  TierStatistics statistics() const;
  /// Throws BrokenInvariant if the books do not add up.
  void check_invariants() const;

 protected:
  /// Keeps the record; false: could not.
  virtual bool store(const RecordPtr& record) = 0;
  /// The stored record, or null if it is not there as it was stored.
  virtual RecordPtr load(const RecordInfo& info) = 0;
  virtual void drop(const RecordInfo& info) = 0;

  /// Enters a record that `store` does not have to be called for (found when a store is opened) as the
  /// newest.
  void adopt(const RecordInfo& info);
  /// Evicts until the budget holds; call after adopting.
  void enforce_budget() { make_room(0); }
  void count_lost() { ++statistics_.lost; }

 private:
  using Place = std::list<RecordInfo>::iterator;
  bool make_room(std::size_t bytes);
  void forget(Place place);

  std::string name_;
  std::size_t budget_;
  std::size_t used_ = 0;
  std::size_t reserved_ = 0;
  Tier* next_ = nullptr;
  std::list<RecordInfo> order_;  // oldest first
  std::unordered_map<Key128, Place, Key128Hash> places_;
  Continuations continuations_;
  TierStatistics statistics_;
};

}  // namespace thalweg::cache
