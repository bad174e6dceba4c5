#include "text/tokenizer_spelling_index.hpp"

#include <xxhash.h>

#include <bit>

namespace thalweg::text {
namespace {

constexpr std::uint64_t position_mask = 0xFFFFFFFF;

std::uint64_t hash_of(std::string_view s) {
  return XXH3_64bits(s.data(), s.size());
}

}  // namespace

SpellingIndex::SpellingIndex(const StringList& spellings)
    : spellings_(spellings), slots_(std::bit_ceil(2 * spellings.size() + 2), 0) {
  for (std::size_t i = 0; i < spellings.size(); ++i) {
    const std::uint64_t hash = hash_of(spellings[i]);
    std::uint64_t& slot = slots_[slot_of(spellings[i], hash)];
    if (slot == 0) {
      slot = (hash & ~position_mask) | (i + 1);
    } else if (!repeated_) {
      repeated_ = i;
    }
  }
}

/// The slot that holds `spelling`, or the empty one where it would go.
std::size_t SpellingIndex::slot_of(std::string_view spelling, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash & mask;
  for (; slots_[at] != 0; at = (at + 1) & mask) {
    const bool same_hash = ((slots_[at] ^ hash) & ~position_mask) == 0;
    if (same_hash && spellings_[(slots_[at] & position_mask) - 1] == spelling) break;
  }
  return at;
}

std::optional<std::size_t> SpellingIndex::find(std::string_view spelling) const {
  const std::uint64_t slot = slots_[slot_of(spelling, hash_of(spelling))];
  if (slot == 0) return std::nullopt;
  return (slot & position_mask) - 1;
}

}  // namespace thalweg::text
