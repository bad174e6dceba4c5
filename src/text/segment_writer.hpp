// Collects the segments of a prompt.
#pragma once

#include <string_view>
#include <utility>

#include "text/chat_encoding.hpp"

namespace thalweg::text {

class SegmentWriter {
 public:
  /// Ordinary text, whatever it spells; joined to ordinary text just before it.
  void text(std::string_view text);

  /// Markup of the format itself, in which `｜DSML｜`, `<think>` and `</think>` stand for the tokens. Never
  /// for text from outside.
  void markup(std::string_view text);

  void control(Control control) { prompt_.segments.emplace_back(control); }
  void ids(std::vector<TokenId> ids) { prompt_.segments.emplace_back(std::move(ids)); }
  void content(Content content);

  Prompt take() { return std::move(prompt_); }

 private:
  Prompt prompt_;
};

}  // namespace thalweg::text
