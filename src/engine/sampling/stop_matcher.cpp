#include "engine/sampling/stop_matcher.hpp"

namespace thalweg::engine {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  check_stop_strings(strings_);
  for (const std::string& string : strings_) {
    std::vector<std::uint32_t> borders(string.size(), 0);
    for (std::size_t i = 1; i < string.size(); ++i) {
      std::uint32_t border = borders[i - 1];
      while (border > 0 && string[border] != string[i]) border = borders[border - 1];
      borders[i] = string[border] == string[i] ? border + 1 : 0;
    }
    borders_.push_back(std::move(borders));
  }
}

std::uint32_t StopStrings::advance(std::size_t i, std::uint32_t matched, char byte) const {
  const std::string& string = strings_[i];
  while (matched > 0 && (matched == string.size() || string[matched] != byte))
    matched = borders_[i][matched - 1];
  return string[matched] == byte ? matched + 1 : 0;
}

StopMatcher::StopMatcher(std::shared_ptr<const StopStrings> strings, bool include_stop)
    : strings_(std::move(strings)), include_stop_(include_stop) {}

StopMatcher::Shown StopMatcher::push(std::string_view piece, bool armed) {
  if (stopped_) return {};
  std::string text(held_string());
  text += piece;
  const std::size_t before = text.size() - piece.size();
  const std::size_t count = strings_ ? strings_->size() : 0;
  for (std::size_t byte = 0; byte < piece.size(); ++byte) {
    std::optional<std::size_t> stop;
    for (std::size_t i = 0; i < count; ++i) {
      matched_[i] = strings_->advance(i, matched_[i], piece[byte]);
      const bool complete = matched_[i] == (*strings_)[i].size();
      if (complete && (!stop || (*strings_)[*stop].size() < matched_[i])) stop = i;
    }
    if (!armed || !stop) continue;
    text.resize(before + byte + 1 - (include_stop_ ? 0 : (*strings_)[*stop].size()));
    stopped_ = true;
    matched_.fill(0);
    return {std::move(text), stop, byte + 1};
  }
  text.resize(text.size() - held());
  return {std::move(text), std::nullopt, piece.size()};
}

std::string StopMatcher::finish() {
  std::string text(held_string());
  stopped_ = true;
  matched_.fill(0);
  return text;
}

std::string_view StopMatcher::held_string() const {
  std::string_view longest;
  for (std::size_t i = 0; strings_ && i < strings_->size(); ++i) {
    // A string that was matched whole, but not armed, can only go on from its border.
    const std::uint32_t open = strings_->open_part(i, matched_[i]);
    if (open > longest.size()) longest = std::string_view((*strings_)[i]).substr(0, open);
  }
  return longest;
}

}  // namespace thalweg::engine
