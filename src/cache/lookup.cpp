#include "cache/lookup.hpp"

#include <algorithm>
#include <utility>

namespace thalweg::cache {

std::string_view to_text(Cut cut) {
  switch (cut) {
    case Cut::end_of_cached_prefix:
      return "end of the cached prefix";
    case Cut::tokens_differ:
      return "tokens differ";
    case Cut::no_snapshot:
      return "no window snapshot at a later position";
    case Cut::last_token:
      return "the last token must be computed";
    case Cut::replayed_tail:
      return "the tail is replayed";
    case Cut::asked:
      return "the request allows no more";
    case Cut::record_lost:
      return "a record was lost";
    case Cut::no_free_block:
      return "no free block";
  }
  return "unknown";
}

Lookup::Lookup(KeyChain& keys, DeviceTier& device, std::vector<Tier*> lower, ReuseMode mode,
               std::uint32_t keep)
    : keys_(keys),
      device_(device),
      lower_(std::move(lower)),
      mode_(mode),
      keep_(keep),
      tails_(device.geometry().block_tokens) {}

void Lookup::begin(const Prompt& prompt) {
  content_ = prompt.content;
  max_resume_ = prompt.max_resume;
  failed_ = false;
  // The decoder half runs on the last `keep` tokens; in any mode the last token's logits are wanted.
  const std::int64_t computed = mode_ == ReuseMode::replay ? std::max<std::int64_t>(keep_, 1) : 1;
  limit_ = std::clamp<std::int64_t>(content_.length() - computed, 0, std::max<std::int64_t>(max_resume_, 0));
  names_.assign(1, keys_.root(prompt.salt));
  nodes_.assign(1, kNil);
  const std::size_t blocks = content_.tokens.size() / device_.geometry().block_tokens;
  for (std::size_t depth = 0; depth < blocks; ++depth) {
    const Content block = block_content(depth);
    const ChainKey name = keys_.extend(names_.back(), RecordKind::block, block);
    // Parents of device nodes are on the device: once the path has left it, it does not come back.
    const bool on_device = nodes_.size() == names_.size();
    const BlockId node = on_device ? device_.index().find(nodes_.back(), name, block) : kNil;
    if (node != kNil) {
      nodes_.push_back(node);
    } else if (!in_lower_tiers(name)) {
      break;
    }
    names_.push_back(name);
  }
}

void Lookup::search() {
  const std::int64_t block_tokens = device_.geometry().block_tokens;
  best_ = {};
  beyond_limit_ = false;
  matched_ = static_cast<std::int64_t>(names_.size() - 1) * block_tokens;
  for (std::size_t depth = names_.size(); depth-- > 0;) {
    mark_snapshots(names_[depth].key);
    for (std::size_t tail = tails_.size(); tail-- > 0;) {
      Candidate candidate{
          .position = static_cast<std::int64_t>(depth) * block_tokens + static_cast<std::int64_t>(tail),
          .depth = depth,
          .name = {}};
      if (!tails_[tail] || candidate.position == 0 || candidate.position > content_.length()) continue;
      const Content content = tail_content(candidate);
      candidate.name = keys_.extend(names_[depth], RecordKind::snapshot, content);
      if (!has_snapshot(candidate.name, content)) continue;
      matched_ = std::max(matched_, candidate.position);
      if (candidate.position <= limit_) {
        best_ = candidate;
        return;
      }
      beyond_limit_ = true;
    }
  }
}

Hit Lookup::describe() const {
  Hit hit{.resume_at = best_.position, .matched = matched_, .replayed = matched_ - best_.position};
  if (beyond_limit_ || best_.position == limit_) {
    hit.cut = limit_reason();
  } else if (failed_) {
    hit.cut = failure_;
  } else if (hit.replayed > 0) {
    hit.cut = Cut::no_snapshot;
  } else {
    hit.cut = goes_on() ? Cut::tokens_differ : Cut::end_of_cached_prefix;
  }
  return hit;
}

void Lookup::shorten(std::size_t depth, Cut reason) {
  names_.resize(depth + 1);
  nodes_.resize(std::min(nodes_.size(), names_.size()));
  failed_ = true;
  failure_ = reason;
}

void Lookup::reject_best(Cut reason) {
  limit_ = best_.position - 1;
  failed_ = true;
  failure_ = reason;
}

Content Lookup::block_content(std::size_t depth) {
  const std::int64_t block_tokens = device_.geometry().block_tokens;
  const std::int64_t begin = static_cast<std::int64_t>(depth) * block_tokens;
  return slice(content_, begin, begin + block_tokens, images_);
}

Content Lookup::tail_content(const Candidate& candidate) {
  const std::int64_t block_tokens = device_.geometry().block_tokens;
  return slice(content_, static_cast<std::int64_t>(candidate.depth) * block_tokens, candidate.position,
               images_);
}

bool Lookup::in_lower_tiers(const ChainKey& name) const {
  return std::ranges::any_of(lower_, [&](const Tier* tier) { return tier->contains(name); });
}

bool Lookup::has_snapshot(const ChainKey& name, const Content& content) const {
  return device_.snapshots().find(name, content) != kNil || in_lower_tiers(name);
}

void Lookup::mark_snapshots(const Key128& parent) {
  tails_.assign(tails_.size(), false);
  device_.snapshots().continuations().mark_snapshots(parent, tails_);
  for (const Tier* tier : lower_) tier->continuations().mark_snapshots(parent, tails_);
}

bool Lookup::goes_on() const {
  const Key128& last = names_.back().key;
  const std::int64_t full = static_cast<std::int64_t>(names_.size() - 1) * device_.geometry().block_tokens;
  const auto tail = static_cast<std::uint32_t>(best_.position - full);
  return device_.index().continuations().go_beyond(last, tail) ||
         device_.snapshots().continuations().go_beyond(last, tail) ||
         std::ranges::any_of(lower_,
                             [&](const Tier* tier) { return tier->continuations().go_beyond(last, tail); });
}

Cut Lookup::limit_reason() const {
  if (failed_) return failure_;
  if (max_resume_ <= limit_) return Cut::asked;
  return mode_ == ReuseMode::replay ? Cut::replayed_tail : Cut::last_token;
}

}  // namespace thalweg::cache
