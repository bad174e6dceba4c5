#include "cache/prefix_cache.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace thalweg::cache {
namespace {

const CacheConfig& validated(const CacheConfig& config) {
  const auto require = [](bool holds, const char* rule) {
    if (!holds) throw UsageError(std::string("cache: ") + rule);
  };
  const Geometry& sizes = config.geometry;
  require(sizes.block_tokens > 0 && sizes.block_bytes > 0 && sizes.encoder_bytes > 0,
          "record sizes must not be zero");
  require(config.blocks >= 2, "at least 2 blocks are needed, one of them reserved");
  require(config.slots >= 2, "at least 2 slots are needed, one of them reserved");
  require((config.name.mode == ReuseMode::replay) == (config.name.keep > 0),
          "replay mode needs a number of tokens to replay, exact mode has none");
  require(config.disk_folder.empty() == (config.disk_bytes == 0),
          "a disk tier needs both a folder and a budget");
  return config;
}

}  // namespace

Sequence& Sequence::operator=(Sequence&& other) noexcept {
  if (this != &other) {
    reset();
    cache_ = std::exchange(other.cache_, nullptr);
    slot_ = other.slot_;
  }
  return *this;
}

std::span<const BlockId> Sequence::blocks() const {
  return cache_->states_[slot_].table.blocks();
}

void Sequence::reset() {
  if (PrefixCache* cache = std::exchange(cache_, nullptr)) cache->release(slot_);
}

PrefixCache::PrefixCache(const CacheConfig& config, CacheDevice& device)
    : keys_(validated(config).name, config.geometry, config.key_hash),
      disk_(config.disk_bytes > 0 ? std::make_unique<DiskTier>(config.disk_folder, keys_.namespace_digest(),
                                                               config.disk_bytes, config.report)
                                  : nullptr),
      host_(config.host_bytes > 0 ? std::make_unique<HostTier>(config.host_bytes) : nullptr),
      device_(device, config.geometry, config.name.mode, config.blocks, config.slots),
      lookup_(keys_, device_, lower_tiers(), config.name.mode, config.name.keep) {
  if (host_ != nullptr) host_->set_next(disk_.get());
  device_.set_next(host_ != nullptr ? static_cast<Tier*>(host_.get()) : disk_.get());
  for (std::uint32_t slot = 0; slot < config.slots; ++slot) states_.emplace_back(device_.blocks());
}

std::optional<Admission> PrefixCache::acquire(const Prompt& prompt) {
  if (!device_.slot_available()) return std::nullopt;
  ++now_;
  lookup_.begin(prompt);
  for (;;) {
    lookup_.search();
    const Candidate candidate = lookup_.best();
    Hit brought;
    const std::optional<BlockId> node = pin_path(candidate.depth, brought);
    if (!node) continue;
    const std::optional<Start> start = start_at(candidate, brought);
    if (!start) {
      device_.index().unpin(*node, now_);
      continue;
    }
    State& state = occupy(start->slot, lookup_.root());
    state.node = *node;
    state.indexed = candidate.depth;
    for (std::size_t depth = 1; depth <= candidate.depth; ++depth)
      state.table.append_shared(lookup_.node(depth));
    if (start->tail != kNil) state.table.append_owned(start->tail);
    Hit hit = lookup_.describe();
    hit.from_host = brought.from_host;
    hit.from_disk = brought.from_disk;
    count(prompt, hit);
    return Admission{Sequence(*this, start->slot), hit};
  }
}

/// Pins the prefix of `depth` blocks, bringing to the device what is not there. Nothing, and a shorter
/// lookup, when that fails. Each turn of the loop in `acquire` shortens the lookup, so it ends.
std::optional<BlockId> PrefixCache::pin_path(std::size_t depth, Hit& brought) {
  PrefixIndex& index = device_.index();
  std::size_t reached = lookup_.depth_on_device(depth);
  BlockId node = lookup_.node(reached);
  // Pinned before anything is allocated: allocation must not evict what is being looked for.
  index.pin(node);
  for (; reached < depth; ++reached) {
    const ChainKey& name = lookup_.name(reached + 1);
    const Content content = lookup_.block_content(reached);
    const RecordPtr record = fetch(name, content, brought);
    const BlockId block = record != nullptr ? device_.allocate_block() : kNil;
    if (block == kNil) {
      index.unpin(node, now_);
      lookup_.shorten(reached, record == nullptr ? Cut::record_lost : Cut::no_free_block);
      return std::nullopt;
    }
    device_.device().write_block(block, record->payload);
    index.insert(node, lookup_.name(reached).key, name, block, content, now_);
    index.advance_pin(block);
    device_.blocks().release(block);
    lookup_.extend_device(block);
    node = block;
  }
  return node;
}

/// A slot with the candidate's windows, and a copy of its partly filled block. Nothing, and a lookup without
/// the candidate, when that fails.
std::optional<PrefixCache::Start> PrefixCache::start_at(const Candidate& candidate, Hit& brought) {
  const Content content = candidate.position > 0 ? lookup_.tail_content(candidate) : Content{};
  SlotId snapshot = candidate.position > 0 ? device_.snapshots().find(candidate.name, content) : kNil;
  RecordPtr record;
  if (snapshot != kNil) {
    device_.snapshots().hold(snapshot);
  } else if (candidate.position > 0) {
    record = fetch(candidate.name, content, brought);
    if (record == nullptr) {
      lookup_.reject_best(Cut::record_lost);
      return std::nullopt;
    }
  }
  const std::optional<Start> start = make_room_to_start(snapshot, record, !content.tokens.empty());
  if (!start) {
    lookup_.reject_best(Cut::no_free_block);
    return std::nullopt;
  }
  CacheDevice& device = device_.device();
  device.clear_slot(start->slot);
  if (snapshot != kNil) {
    device_.load_windows(snapshot, start->slot);
    if (start->tail != kNil) device.copy_block(device_.snapshots().entry(snapshot).tail, start->tail);
    device_.snapshots().unhold(snapshot, now_);
  } else if (record != nullptr) {
    device_.load_windows(*record, start->slot);
    if (start->tail != kNil) device.write_block(start->tail, device_.tail_of(*record));
  }
  return start;
}

/// Allocates slot and tail block. If the held snapshot has the last of them, it gives them up and becomes a
/// record.
std::optional<PrefixCache::Start> PrefixCache::make_room_to_start(SlotId& snapshot, RecordPtr& record,
                                                                  bool with_tail) {
  Start start;
  const auto allocate = [&] {
    if (start.slot == kNil) start.slot = device_.allocate_slot();
    if (with_tail && start.tail == kNil) start.tail = device_.allocate_block();
    return start.slot != kNil && (!with_tail || start.tail != kNil);
  };
  if (allocate()) return start;
  if (snapshot != kNil) {
    record = device_.demote_snapshot(std::exchange(snapshot, kNil));
    if (allocate()) return start;
  }
  check(start.slot != kNil, "a slot was available and is gone");
  device_.slots().release(start.slot);
  return std::nullopt;
}

RecordPtr PrefixCache::fetch(const ChainKey& name, const Content& content, Hit& brought) {
  for (Tier* tier : lower_tiers()) {
    RecordPtr record = tier->get(name);
    if (record == nullptr) continue;
    if (record->content() == content && device_.well_formed(*record)) {
      (tier == host_.get() ? brought.from_host : brought.from_disk) += content.length();
      return record;
    }
    tier->erase(name.key);
  }
  return nullptr;
}

Hit PrefixCache::peek(const Prompt& prompt) {
  lookup_.begin(prompt);
  lookup_.search();
  return lookup_.describe();
}

std::uint32_t PrefixCache::blocks_to_start(const Prompt& prompt, std::int64_t tokens) {
  lookup_.begin(prompt);
  lookup_.search();
  std::size_t shared = 0;
  const std::size_t depth = lookup_.depth_on_device(lookup_.best().depth);
  while (shared < depth && device_.index().pins(lookup_.node(shared + 1)) > 0) ++shared;
  return blocks_beside(tokens, shared);
}

std::uint32_t PrefixCache::blocks_to_restore(const SavedSequence& saved, std::int64_t tokens) {
  const PrefixIndex& index = device_.index();
  std::size_t shared = 0;
  for (const SavedSequence::Indexed& block : saved.indexed_) {
    if (index.serial(block.block) != block.serial || index.pins(block.block) == 0) break;
    ++shared;
  }
  return blocks_beside(tokens, shared);
}

std::uint32_t PrefixCache::blocks_freed(std::span<const Sequence* const> sequences) {
  std::vector<BlockId> held;
  for (const Sequence* sequence : sequences) {
    const std::span<const BlockId> blocks = state_of(*sequence).table.blocks();
    held.insert(held.end(), blocks.begin(), blocks.end());
  }
  std::sort(held.begin(), held.end());
  std::uint32_t freed = 0;
  for (std::size_t i = 0, end = 0; i < held.size(); i = end) {
    const BlockId block = held[i];
    while (end < held.size() && held[end] == block) ++end;
    const std::uint32_t indexed = device_.index().contains(block) ? 1 : 0;
    if (device_.blocks().references(block) == end - i + indexed) ++freed;
  }
  return freed;
}

std::uint32_t PrefixCache::blocks_beside(std::int64_t tokens, std::size_t shared) const {
  const std::size_t blocks = blocks_for(tokens);
  return static_cast<std::uint32_t>(blocks - std::min(blocks, shared));
}

void PrefixCache::count(const Prompt& prompt, const Hit& hit) {
  ++statistics_.prompts;
  statistics_.prompt_tokens += prompt.content.tokens.size();
  statistics_.reused_tokens += static_cast<std::uint64_t>(hit.resume_at);
  statistics_.reused_from_host += static_cast<std::uint64_t>(hit.from_host);
  statistics_.reused_from_disk += static_cast<std::uint64_t>(hit.from_disk);
  statistics_.replayed_tokens += static_cast<std::uint64_t>(hit.replayed);
  ++statistics_.cuts[static_cast<std::size_t>(hit.cut)];
}

bool PrefixCache::reserve(Sequence& sequence, std::int64_t begin, std::int64_t end) {
  State& state = state_of(sequence);
  const std::size_t first = static_cast<std::size_t>(begin) / block_tokens();
  check(begin >= 0 && begin <= end && first >= state.indexed, "published positions are never written again");
  const std::size_t needed = blocks_for(end);
  for (std::size_t i = first; i < std::min(needed, state.table.size()); ++i) {
    if (state.table.exclusive(i)) continue;
    const BlockId copy = device_.allocate_block();
    if (copy == kNil) return false;
    device_.device().copy_block(state.table.blocks()[i], copy);
    state.table.replace(i, copy);
    ++statistics_.copies_on_write;
  }
  while (state.table.size() < needed) {
    const BlockId block = device_.allocate_block();
    if (block == kNil) return false;
    state.table.append_owned(block);
  }
  return true;
}

void PrefixCache::truncate(Sequence& sequence, std::int64_t tokens) {
  State& state = state_of(sequence);
  check(tokens >= 0 && blocks_for(tokens) >= state.indexed, "published blocks are not taken back");
  state.table.truncate(blocks_for(tokens));
}

void PrefixCache::publish(Sequence& sequence, const Content& content, std::int64_t computed,
                          bool with_snapshot) {
  State& state = state_of(sequence);
  check(computed >= 0 && computed <= content.length(), "published more than the sequence's tokens");
  check(blocks_for(computed) <= state.table.size(), "published positions without blocks");
  ++now_;
  index_blocks(state, content, static_cast<std::size_t>(computed) / block_tokens());
  if (with_snapshot && computed > 0) snapshot(state, sequence.slot(), content, computed);
}

void PrefixCache::index_blocks(State& state, const Content& content, std::size_t blocks) {
  PrefixIndex& index = device_.index();
  while (state.indexed < blocks) {
    const auto begin = static_cast<std::int64_t>(state.indexed * block_tokens());
    const Content block = slice(content, begin, begin + block_tokens(), images_);
    const ChainKey parent = name_of(state);
    const ChainKey name = keys_.extend(parent, RecordKind::block, block);
    const BlockId own = state.table.blocks()[state.indexed];
    BlockId node = index.find(state.node, name, block);
    if (node == kNil) {
      node = own;
      index.insert(state.node, parent.key, name, node, block, now_);
    } else if (node != own) {
      // Someone else published the same: one of the two is enough, else a sequence would hold twice what it
      // needs.
      device_.blocks().retain(node);
      state.table.replace(state.indexed, node);
    }
    index.advance_pin(node);
    state.node = node;
    ++state.indexed;
  }
}

void PrefixCache::snapshot(State& state, SlotId slot, const Content& content, std::int64_t computed) {
  const std::size_t full = static_cast<std::size_t>(computed) / block_tokens();
  check(state.indexed == full, "a snapshot lies behind what was published");
  const Content tail = slice(content, static_cast<std::int64_t>(full * block_tokens()), computed, images_);
  const ChainKey& parent = name_of(state);
  const ChainKey name = keys_.extend(parent, RecordKind::snapshot, tail);
  if (const SlotId present = device_.snapshots().find(name, tail); present != kNil) {
    device_.snapshots().touch(present, now_);
    return;
  }
  const BlockId partial = tail.tokens.empty() ? kNil : state.table.blocks()[full];
  const bool taken = device_.take_snapshot(slot, partial, parent.key, name, tail, now_);
  ++(taken ? statistics_.snapshots_taken : statistics_.snapshots_skipped);
}

std::optional<Sequence> PrefixCache::fork(const Sequence& parent) {
  State& source = state_of(parent);
  const SlotId slot = device_.allocate_slot();
  if (slot == kNil) return std::nullopt;
  State& state = occupy(slot, source.root);
  state.table.share_all(source.table);
  state.node = source.node;
  state.indexed = source.indexed;
  device_.index().pin(state.node);
  for (const SlotSection section : {SlotSection::encoder, SlotSection::decoder}) {
    device_.device().copy_slot(parent.slot(), slot, section);
  }
  return Sequence(*this, slot);
}

PrefixCache::State& PrefixCache::state_of(const Sequence& sequence) {
  check(sequence.cache_ == this, "a sequence of another cache, or an ended one");
  return states_[sequence.slot_];
}

PrefixCache::State& PrefixCache::occupy(SlotId slot, const ChainKey& root) {
  State& state = states_[slot];
  check(!state.running, "a slot was given to two sequences");
  state.running = true;
  state.root = root;
  return state;
}

void PrefixCache::release(SlotId slot) {
  State& state = states_[slot];
  state.table.truncate(0);
  device_.index().unpin(std::exchange(state.node, kNil), ++now_);
  state.indexed = 0;
  state.running = false;
  device_.slots().release(slot);
}

const ChainKey& PrefixCache::name_of(const State& state) {
  return state.node == kNil ? state.root : device_.index().name(state.node);
}

std::vector<Tier*> PrefixCache::lower_tiers() const {
  std::vector<Tier*> tiers;
  if (host_ != nullptr) tiers.push_back(host_.get());
  if (disk_ != nullptr) tiers.push_back(disk_.get());
  return tiers;
}

std::size_t PrefixCache::blocks_for(std::int64_t tokens) const {
  return (static_cast<std::size_t>(tokens) + block_tokens() - 1) / block_tokens();
}

}  // namespace thalweg::cache
