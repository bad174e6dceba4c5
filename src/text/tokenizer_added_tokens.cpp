#include "text/tokenizer_added_tokens.hpp"

namespace thalweg::text {

AddedTokenTree::AddedTokenTree(const std::vector<AddedToken>& tokens) : nodes_{Node{0}}, can_start_{} {
  for (const AddedToken& token : tokens) {
    can_start_[static_cast<std::uint8_t>(token.spelling.front())] = true;
    std::int32_t node = 0;
    for (const char byte : token.spelling) {
      std::int32_t child = step(node, byte);
      if (child < 0) {
        child = static_cast<std::int32_t>(nodes_.size());
        nodes_.push_back({static_cast<std::uint8_t>(byte), -1, nodes_[node].child, -1});
        nodes_[node].child = child;
      }
      node = child;
    }
    nodes_[node].id = token.id;
  }
}

std::int32_t AddedTokenTree::step(std::int32_t node, char byte) const {
  std::int32_t child = nodes_[node].child;
  while (child >= 0 && nodes_[child].byte != static_cast<std::uint8_t>(byte)) child = nodes_[child].sibling;
  return child;
}

std::optional<AddedTokenTree::Match> AddedTokenTree::find(std::string_view text, std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!can_start_[static_cast<std::uint8_t>(text[begin])]) continue;
    std::optional<Match> longest;
    std::int32_t node = 0;
    for (std::size_t end = begin; end < text.size() && (node = step(node, text[end])) >= 0; ++end) {
      if (nodes_[node].id >= 0) longest = Match{begin, end + 1 - begin, nodes_[node].id};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

std::optional<TokenId> AddedTokenTree::id_of(std::string_view spelling) const {
  std::int32_t node = 0;
  for (const char byte : spelling) {
    node = step(node, byte);
    if (node < 0) return std::nullopt;
  }
  if (nodes_[node].id < 0) return std::nullopt;
  return nodes_[node].id;
}

}  // namespace thalweg::text
