#include "grammar/character_set.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "text/utf8.hpp"

namespace thalweg::grammar {
namespace {

constexpr char32_t kLastBeforeSurrogates = 0xD7FF;
constexpr char32_t kFirstAfterSurrogates = 0xE000;
constexpr char32_t kLast = 0x10FFFF;

}  // namespace

CharacterSet CharacterSet::complement() const {
  CharacterSet sorted = *this;
  sorted.add(kLastBeforeSurrogates + 1, kFirstAfterSurrogates - 1);
  std::sort(sorted.ranges.begin(), sorted.ranges.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  CharacterSet result;
  char32_t next = 0;
  for (const Range& range : sorted.ranges) {
    if (range.first > next) result.add(next, range.first - 1);
    next = std::max<char32_t>(next, range.last + 1);
  }
  if (next <= kLast) result.add(next, kLast);
  return result;
}

std::string CharacterSet::spelling() const {
  std::string text = "[";
  for (const Range& range : ranges) {
    text += spell_character(range.first);
    if (range.last != range.first) text += "-" + spell_character(range.last);
  }
  return text + "]";
}

std::string spell_character(char32_t character) {
  return fmt::format("\\U{:08X}", static_cast<std::uint32_t>(character));
}

std::string spell_literal(std::string_view text) {
  std::string literal = "\"";
  while (!text.empty()) {
    const text::Utf8Unit unit = text::read_utf8(text);
    const char32_t c = unit.code_point;
    const bool plain = c >= ' ' && c < 0x7F && c != '"' && c != '\\';
    literal += plain ? std::string(1, static_cast<char>(c)) : spell_character(c);
    text.remove_prefix(unit.length);
  }
  return literal + "\"";
}

}  // namespace thalweg::grammar
