// Regular languages of Unicode strings as deterministic automata: what patterns, enumerations and number
// ranges become, because these can be intersected, united and complemented exactly.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/schema.hpp"

namespace thalweg::schema {

/// An automaton grew beyond SchemaLimits. Caught where keyword and place are known.
class TooLarge : public std::exception {
 public:
  const char* what() const noexcept override { return "too large"; }
};

/// Steps that may still be spent on automata for one schema.
class Work {
 public:
  explicit Work(std::size_t steps) : left_(steps) {}
  /// Throws TooLarge when nothing is left.
  void spend(std::size_t steps) {
    if (steps > left_) throw TooLarge();
    left_ -= steps;
  }

 private:
  std::size_t left_;
};

/// Complete and minimal, states numbered in the order of a breadth-first walk from state 0: equal languages
/// are equal automata. Class c of characters is [starts[c], starts[c + 1]); the last ends at 0x10FFFF.
struct Automaton {
  std::vector<char32_t> starts;
  std::vector<std::uint32_t> next;  ///< [states, classes]
  std::vector<bool> accepts;        ///< [states]

  std::size_t classes() const { return starts.size(); }
  std::size_t states() const { return accepts.size(); }
  std::uint32_t step(std::uint32_t state, char32_t character) const;
  bool operator==(const Automaton&) const = default;
};

using Language = std::shared_ptr<const Automaton>;

struct CharacterRange {
  char32_t first;
  char32_t last;
};
using CharacterRanges = std::vector<CharacterRange>;

/// Sorted and without overlaps.
CharacterRanges normalised(CharacterRanges ranges);
CharacterRanges complement(const CharacterRanges& ranges);

/// Explores an automaton given as functions from state 0; states are any numbers. `step(state, c)` takes a
/// character of each class. Throws TooLarge for more than `limit` states.
Language explore(std::vector<char32_t> starts,
                 const std::function<std::uint64_t(std::uint64_t, char32_t)>& step,
                 const std::function<bool(std::uint64_t)>& accepts, Work& work,
                 std::size_t limit = SchemaLimits::states);

Language all_strings();
Language no_strings();
/// The words must be valid UTF-8.
Language words(std::vector<std::string> list, Work& work);
/// The strings of `a` that have `least` to `most` characters.
Language with_lengths(const Language& a, std::size_t least, std::optional<std::size_t> most, Work& work);

Language intersect(const Language& a, const Language& b, Work& work);
Language unite(const Language& a, const Language& b, Work& work);
Language complement(const Language& a);
bool is_empty(const Language& a);
bool is_all(const Language& a);
bool equal(const Language& a, const Language& b);
/// `text` must be valid UTF-8.
bool contains(const Language& a, std::string_view text);
/// The strings of a language that has at most `most` of them.
std::optional<std::vector<std::string>> list_words(const Language& a, std::size_t most);
/// States from which an accepting one can be reached.
std::vector<bool> live_states(const Automaton& a);

/// The characters of valid UTF-8.
std::u32string characters_of(std::string_view text);
std::string utf8_of(char32_t character);

}  // namespace thalweg::schema
