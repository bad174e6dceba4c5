// Byte-pair encoding of one piece: merge the adjacent pair of lowest rank until none is left.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace thalweg::text {

/// The merge rules of a vocabulary. Once all are added, safe to share between threads.
class BytePairEncoder {
 public:
  /// Working memory of encode(), to be kept from one piece to the next.
  struct Scratch {
    struct Symbol {
      TokenId id;
      std::uint32_t previous, next;  // neighbours still alive
      std::uint32_t rank;            // of the pair with the next symbol
      TokenId merged;                // what that pair becomes
    };
    std::vector<Symbol> symbols;
    std::vector<std::uint64_t> queue;
  };

  /// `byte_ids`: the id of each single byte. Room is made for `merges` rules, fewer than 2^31.
  BytePairEncoder(const std::array<TokenId, 256>& byte_ids, std::size_t merges);

  /// Adds the rule of the next rank: `left` and `right`, not negative, become `merged`. No more rules than
  /// the constructor was told. False, and nothing is added, if the pair has a rule already.
  bool add_merge(TokenId left, TokenId right, TokenId merged);

  /// Appends the ids of `piece` to `out`: repeatedly the pair of lowest rank is merged, the leftmost one on a
  /// tie. O(n log n) for n bytes, n < 2^32.
  void encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& out) const;

 private:
  struct Slot {
    std::uint64_t pair;
    std::uint32_t rank;
    TokenId merged;
  };

  std::size_t find(TokenId left, TokenId right) const;
  void rank_pair(Scratch& scratch, std::uint32_t at) const;

  std::array<TokenId, 256> byte_ids_;
  std::vector<Slot> slots_;  // open addressing, a power of two of them, at most half full
  int shift_;
  std::uint32_t next_rank_ = 0;
};

}  // namespace thalweg::text
