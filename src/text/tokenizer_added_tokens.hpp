// Added tokens: spellings that become one token wherever they stand in a text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/tokenizer_file.hpp"

namespace thalweg::text {

/// A prefix tree over the spellings. Immutable.
class AddedTokenTree {
 public:
  struct Match {
    std::size_t begin, length;  ///< in bytes of the text
    TokenId id;
  };

  explicit AddedTokenTree(const std::vector<AddedToken>& tokens);

  /// The first added token spelled at or after `from`, the longest of those that start there.
  std::optional<Match> find(std::string_view text, std::size_t from) const;

  /// Id of the token spelled exactly `spelling`.
  std::optional<TokenId> id_of(std::string_view spelling) const;

 private:
  struct Node {
    std::uint8_t byte;
    std::int32_t child = -1, sibling = -1;  // first child, next child of the same parent
    TokenId id = -1;                        // token that ends here
  };

  std::int32_t step(std::int32_t node, char byte) const;

  std::vector<Node> nodes_;          // [0] is the root
  std::array<bool, 256> can_start_;  // bytes that a spelling starts with
};

}  // namespace thalweg::text
