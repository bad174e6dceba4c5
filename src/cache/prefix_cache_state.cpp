// Sequences on the host, orderly shutdown, and the cache's books.
#include "cache/prefix_cache.hpp"

namespace thalweg::cache {

std::optional<SavedSequence> PrefixCache::save(Sequence& sequence, std::int64_t computed) {
  State& state = state_of(sequence);
  const Geometry& sizes = device_.geometry();
  const std::size_t blocks = blocks_for(computed);
  check(computed >= 0 && blocks <= state.table.size(), "saved positions without blocks");
  const std::size_t bytes = blocks * sizes.block_bytes + sizes.slot_bytes();
  if (host_ == nullptr || !host_->reserve(bytes)) return std::nullopt;
  SavedSequence saved(host_.get(), bytes);
  saved.root_ = state.root;
  saved.indexed_.resize(state.indexed);
  BlockId node = state.node;
  for (std::size_t depth = state.indexed; depth-- > 0; node = device_.index().parent(node)) {
    saved.indexed_[depth] = {node, device_.index().serial(node)};
  }
  saved.blocks_.resize(blocks * sizes.block_bytes);
  for (std::size_t i = 0; i < blocks; ++i) {
    device_.device().read_block(state.table.blocks()[i],
                                std::span(saved.blocks_).subspan(i * sizes.block_bytes, sizes.block_bytes));
  }
  saved.slot_.resize(sizes.slot_bytes());
  const std::span<std::byte> slot(saved.slot_);
  device_.device().read_slot(sequence.slot(), SlotSection::encoder, slot.first(sizes.encoder_bytes));
  device_.device().read_slot(sequence.slot(), SlotSection::decoder, slot.subspan(sizes.encoder_bytes));
  sequence.reset();
  ++statistics_.saved_sequences;
  return saved;
}

std::optional<Sequence> PrefixCache::restore(SavedSequence& saved) {
  check(saved.reservation_ != nullptr, "restored a sequence twice");
  const SlotId slot = device_.allocate_slot();
  if (slot == kNil) return std::nullopt;
  Sequence sequence(*this, slot);
  if (!bring_back(occupy(slot, saved.root_), saved)) return std::nullopt;
  const std::span<const std::byte> bytes(saved.slot_);
  const std::size_t encoder_bytes = device_.geometry().encoder_bytes;
  device_.device().write_slot(slot, SlotSection::encoder, bytes.first(encoder_bytes));
  device_.device().write_slot(slot, SlotSection::decoder, bytes.subspan(encoder_bytes));
  saved.reservation_.reset();
  saved.blocks_ = {};
  saved.slot_ = {};
  ++statistics_.restored_sequences;
  return sequence;
}

bool PrefixCache::bring_back(State& state, const SavedSequence& saved) {
  for (const SavedSequence::Indexed& indexed : saved.indexed_) {
    if (device_.index().serial(indexed.block) != indexed.serial) break;
    state.table.append_shared(indexed.block);
    device_.index().advance_pin(indexed.block);
    state.node = indexed.block;
    ++state.indexed;
  }
  const std::size_t block_bytes = device_.geometry().block_bytes;
  for (std::size_t i = state.indexed; i < saved.blocks_.size() / block_bytes; ++i) {
    const BlockId block = device_.allocate_block();
    if (block == kNil) return false;
    state.table.append_owned(block);
    device_.device().write_block(block, std::span(saved.blocks_).subspan(i * block_bytes, block_bytes));
  }
  return true;
}

void PrefixCache::flush() {
  device_.flush();
  if (host_ != nullptr) host_->flush();
}

CacheStatistics PrefixCache::statistics() const {
  CacheStatistics statistics = statistics_;
  statistics.evicted_blocks = device_.evicted_blocks();
  statistics.evicted_snapshots = device_.evicted_snapshots();
  if (host_ != nullptr) statistics.host = host_->statistics();
  if (disk_ != nullptr) statistics.disk = disk_->statistics();
  return statistics;
}

void PrefixCache::check_invariants() {
  const PrefixIndex& index = device_.index();
  const std::uint32_t blocks = device_.blocks().capacity();
  std::vector<std::uint32_t> references(blocks + 1);
  std::vector<std::uint32_t> pins(blocks + 1);
  for (SlotId slot = 1; slot < states_.size(); ++slot) {
    const State& state = states_[slot];
    const SnapshotStore::Entry& snapshot = device_.snapshots().entry(slot);
    check(!(state.running && snapshot.present), "a slot holds a sequence and a snapshot");
    check(device_.slots().references(slot) == (state.running || snapshot.present ? 1U : 0U),
          "a slot is in use by no one, or free and in use");
    check(!snapshot.held, "a snapshot stayed held");
    for (const BlockId block : state.table.blocks()) ++references[block];
    if (snapshot.present && snapshot.tail != kNil) ++references[snapshot.tail];
    std::size_t depth = 0;
    for (BlockId node = state.node; node != kNil; node = index.parent(node), ++depth) ++pins[node];
    check(depth == state.indexed, "a sequence's pinned path is not as deep as it thinks");
  }
  for (BlockId block = 1; block <= blocks; ++block) {
    if (index.contains(block)) ++references[block];
    check(device_.blocks().references(block) == references[block], "a block's count is not its references");
    check(index.pins(block) == pins[block], "a node's pins are not the sequences below it");
  }
  device_.blocks().check_invariants();
  device_.slots().check_invariants();
  device_.index().check_invariants();
  device_.snapshots().check_invariants();
  for (const Tier* tier : lower_tiers()) tier->check_invariants();
}

}  // namespace thalweg::cache
