// Sets of Unicode characters, and their spelling in a grammar.
#pragma once

#include <string>
#include <vector>

namespace thalweg::grammar {

/// Ranges of code points, both ends included; surrogates never belong to one.
struct CharacterSet {
  struct Range {
    char32_t first;
    char32_t last;
  };
  std::vector<Range> ranges;

  void add(char32_t first, char32_t last) { ranges.push_back({first, last}); }
  void add(const CharacterSet& other) {
    ranges.insert(ranges.end(), other.ranges.begin(), other.ranges.end());
  }
  /// All scalar values that are not in it.
  CharacterSet complement() const;
  /// "[...]" of a grammar; the set must not be empty.
  std::string spelling() const;
};

/// One character inside a literal or class of a grammar.
std::string spell_character(char32_t character);
/// A literal of a grammar that matches `text`, which is valid UTF-8.
std::string spell_literal(std::string_view text);

}  // namespace thalweg::grammar
