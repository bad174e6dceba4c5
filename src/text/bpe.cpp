#include "text/bpe.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace thalweg::text {
namespace {

constexpr std::uint64_t empty_slot = ~std::uint64_t{0};
constexpr std::uint32_t no_symbol = ~std::uint32_t{0};
constexpr std::uint32_t no_rank = ~std::uint32_t{0};

std::uint64_t pair_key(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
}

/// Multiplicative hashing by the golden ratio; the upper bits are the good ones.
std::size_t slot_of(std::uint64_t key, int shift) {
  return (key ^ key >> 29) * 0x9E3779B97F4A7C15U >> shift;
}

/// Queue entries order by rank, then by position.
std::uint64_t queue_entry(std::uint32_t rank, std::uint32_t at) {
  return std::uint64_t{rank} << 32 | at;
}

}  // namespace

BytePairEncoder::BytePairEncoder(const std::array<TokenId, 256>& byte_ids, std::size_t merges)
    : byte_ids_(byte_ids),
      slots_(std::bit_ceil(2 * merges + 2), Slot{empty_slot, no_rank, -1}),
      shift_(64 - std::countr_zero(slots_.size())) {}

bool BytePairEncoder::add_merge(TokenId left, TokenId right, TokenId merged) {
  Slot& slot = slots_[find(left, right)];
  if (slot.pair != empty_slot) return false;
  slot = {pair_key(left, right), next_rank_++, merged};
  return true;
}

/// The slot of the pair, or the empty one where it would go.
std::size_t BytePairEncoder::find(TokenId left, TokenId right) const {
  const std::uint64_t key = pair_key(left, right);
  std::size_t at = slot_of(key, shift_);
  while (slots_[at].pair != key && slots_[at].pair != empty_slot) at = (at + 1) & (slots_.size() - 1);
  return at;
}

/// Notes what the pair of `at` and its next symbol becomes.
void BytePairEncoder::rank_pair(Scratch& scratch, std::uint32_t at) const {
  auto& symbol = scratch.symbols[at];
  symbol.rank = no_rank;
  if (symbol.next == no_symbol) return;
  const Slot& slot = slots_[find(symbol.id, scratch.symbols[symbol.next].id)];
  symbol.rank = slot.rank;
  symbol.merged = slot.merged;
}

void BytePairEncoder::encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const {
  auto& symbols = scratch.symbols;
  auto& queue = scratch.queue;
  const auto count = static_cast<std::uint32_t>(piece.size());
  symbols.resize(count);
  queue.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    symbols[i] = {byte_ids_[static_cast<std::uint8_t>(piece[i])], i == 0 ? no_symbol : i - 1,
                  i + 1 == count ? no_symbol : i + 1, no_rank, -1};
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    rank_pair(scratch, i);
    if (symbols[i].rank != no_rank) queue.push_back(queue_entry(symbols[i].rank, i));
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());

  const auto rank_again = [&](std::uint32_t at) {
    rank_pair(scratch, at);
    if (symbols[at].rank == no_rank) return;
    queue.push_back(queue_entry(symbols[at].rank, at));
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const auto rank = static_cast<std::uint32_t>(queue.back() >> 32);
    const auto at = static_cast<std::uint32_t>(queue.back());
    queue.pop_back();
    auto& left = symbols[at];
    if (left.rank != rank) continue;  // an entry for a pair that has changed since
    auto& right = symbols[left.next];
    left.id = left.merged;
    left.next = right.next;
    right.rank = no_rank;
    if (left.next != no_symbol) symbols[left.next].previous = at;
    rank_again(at);
    if (left.previous != no_symbol) rank_again(left.previous);
  }
  for (std::uint32_t at = 0; at != no_symbol && at < count; at = symbols[at].next)
    out.push_back(symbols[at].id);
}

}  // namespace thalweg::text
