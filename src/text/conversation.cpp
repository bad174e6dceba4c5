#include "text/conversation.hpp"

#include <algorithm>

namespace thalweg::text {
namespace {

bool holds_word(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

bool holds_word(const Content& content, std::string_view word) {
  return std::any_of(content.parts.begin(), content.parts.end(), [&](const Content::Part& part) {
    const auto* text = std::get_if<std::string>(&part);
    return text != nullptr && holds_word(*text, word);
  });
}

}  // namespace

bool Content::empty() const {
  if (parts.empty()) return true;
  // Two parts, even empty ones, have a blank line between them.
  const auto* text = std::get_if<std::string>(&parts.front());
  return parts.size() == 1 && text != nullptr && text->empty();
}

bool tools_in_force(const Conversation& conversation) {
  return conversation.tool_choice != ToolChoice::none && !conversation.tools.empty();
}

bool mentions(const Conversation& conversation, std::string_view word) {
  return std::any_of(conversation.messages.begin(), conversation.messages.end(), [&](const Message& message) {
    return std::visit([&](const auto& m) { return holds_word(m.content, word); }, message);
  });
}

}  // namespace thalweg::text
