// Where a prompt can resume: its longest cached prefix over all tiers, and the last snapshot within it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "cache/device_tier.hpp"
#include "cache/prefix_key.hpp"
#include "cache/tier.hpp"

namespace thalweg::cache {

/// Why a hit is not longer.
enum class Cut : std::uint8_t {
  end_of_cached_prefix,  ///< nothing is cached beyond it
  tokens_differ,  ///< what is cached beyond it goes on differently (or within a block, without a snapshot
                  ///< there)
  no_snapshot,    ///< the KV is cached, but there are no windows to resume with at a later position
  last_token,     ///< the last token must be computed: its logits are wanted
  replayed_tail,  ///< the decoder half must run on the last `keep` tokens (replay mode)
  asked,          ///< the prompt allowed no more (`Prompt::max_resume`)
  record_lost,    ///< a record on disk was not intact
  no_free_block,  ///< running sequences left no block to bring it back into
};
constexpr std::size_t kCuts = 8;
/// One phrase for logs.
std::string_view to_text(Cut cut);

/// What a prompt gets from the cache.
struct Hit {
  std::int64_t resume_at = 0;  ///< tokens reused; the first row to run is this position
  std::int64_t matched = 0;    ///< prompt tokens whose global KV is cached
  std::int64_t replayed = 0;   ///< matched tokens that run again all the same: matched - resume_at
  Cut cut = Cut::end_of_cached_prefix;
  std::int64_t from_host = 0;  ///< of resume_at, tokens brought back from host memory
  std::int64_t from_disk = 0;  ///< of resume_at, tokens brought back from disk
};

struct Prompt {
  Content content;
  std::string_view salt;  ///< the tenant's; prompts of different salts never share anything
  std::int64_t max_resume =
      std::numeric_limits<std::int64_t>::max();  ///< 0 when every row is wanted (log-probabilities)
};

/// The last position within the limit that has windows to resume with.
struct Candidate {
  std::int64_t position = 0;  ///< 0: none
  std::size_t depth = 0;      ///< full blocks before it
  ChainKey name;              ///< of the snapshot
};

/// One lookup at a time, in three parts, so that it can be repeated when a record turns out to be lost.
/// Changes nothing in any tier. One thread.
class Lookup {
 public:
  /// `lower`: the tiers below the device, in the order in which they are asked.
  Lookup(KeyChain& keys, DeviceTier& device, std::vector<Tier*> lower, ReuseMode mode, std::uint32_t keep);

  /// Follows the prompt block by block as far as anything is cached.
  void begin(const Prompt& prompt);
  /// Finds the best candidate up to `limit()`.
  void search();
  /// What would come of it, in words and numbers (tiers aside).
  Hit describe() const;

  const Candidate& best() const { return best_; }
  const ChainKey& root() const { return names_.front(); }
  /// Name of the prefix of `depth` blocks.
  const ChainKey& name(std::size_t depth) const { return names_[depth]; }
  /// The node of a prefix, or kNil beyond what is on the device.
  BlockId node(std::size_t depth) const { return depth < nodes_.size() ? nodes_[depth] : kNil; }
  /// How many of the first `depth` blocks are on the device.
  std::size_t depth_on_device(std::size_t depth) const { return std::min(depth, nodes_.size() - 1); }
  std::int64_t limit() const { return limit_; }

  /// The block at `depth` has been brought to the device.
  void extend_device(BlockId node) { nodes_.push_back(node); }
  /// The block at `depth` cannot be had, for this reason.
  void shorten(std::size_t depth, Cut reason);
  /// The candidate cannot be had, for this reason.
  void reject_best(Cut reason);

  /// The tokens of the block at `depth`, or of a candidate after its last full block. Valid until the next
  /// call.
  Content block_content(std::size_t depth);
  Content tail_content(const Candidate& candidate);

 private:
  bool in_lower_tiers(const ChainKey& name) const;
  bool has_snapshot(const ChainKey& name, const Content& content) const;
  void mark_snapshots(const Key128& parent);
  bool goes_on() const;
  Cut limit_reason() const;

  KeyChain& keys_;
  DeviceTier& device_;
  std::vector<Tier*> lower_;
  ReuseMode mode_;
  std::uint32_t keep_;

  Content content_;
  std::int64_t max_resume_ = 0;
  std::int64_t limit_ = 0;
  std::vector<ChainKey> names_;  // names_[d]: the prefix of d blocks; names_[0] the tenant's root
  std::vector<BlockId> nodes_;   // nodes_[d]: its node while on the device; nodes_[0] is kNil
  Candidate best_;
  std::int64_t matched_ = 0;
  bool beyond_limit_ = false;  // a snapshot lies between the limit and the end of the prompt
  bool failed_ = false;        // something could not be had
  Cut failure_ = Cut::record_lost;
  std::vector<ImageSpan> images_;  // of the slice last taken
  std::vector<bool> tails_;
};

}  // namespace thalweg::cache
