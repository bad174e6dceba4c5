#include "text/segment_writer.hpp"

#include <algorithm>
#include <array>

namespace thalweg::text {

void SegmentWriter::text(std::string_view text) {
  if (text.empty()) return;
  auto& segments = prompt_.segments;
  if (segments.empty() || !std::holds_alternative<std::string>(segments.back())) {
    segments.emplace_back(std::string());
  }
  std::get<std::string>(segments.back()).append(text);
}

void SegmentWriter::markup(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, Control>, 3> kSpellings{
      {{"｜DSML｜", Control::dsml}, {"<think>", Control::think}, {"</think>", Control::end_think}}};
  while (!text.empty()) {
    std::size_t first = text.size();
    const std::pair<std::string_view, Control>* found = nullptr;
    for (const auto& spelling : kSpellings) {
      if (const auto at = text.find(spelling.first); at < first) {
        first = at;
        found = &spelling;
      }
    }
    this->text(text.substr(0, first));
    text.remove_prefix(first);
    if (found == nullptr) return;
    control(found->second);
    text.remove_prefix(found->first.size());
  }
}

void SegmentWriter::content(Content content) {
  std::string_view separator;
  for (Content::Part& part : content.parts) {
    text(separator);
    if (auto* image = std::get_if<Image>(&part)) {
      prompt_.segments.emplace_back(ImageSlot{prompt_.images.size()});
      prompt_.images.push_back(std::move(*image));
    } else {
      text(std::get<std::string>(part));
    }
    separator = "\n\n";
  }
}

}  // namespace thalweg::text
