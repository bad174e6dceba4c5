// The syntax of regular expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "schema/automaton.hpp"

namespace thalweg::schema {

/// A tree: the language of the whole expression, anchors being assertions.
struct RegexTree {
  enum class Kind { empty, set, sequence, choice, repeat, start, end };
  Kind kind = Kind::empty;
  CharacterRanges set;              ///< set: sorted
  std::vector<RegexTree> children;  ///< sequence, choice; repeat: one
  std::size_t least = 0;            ///< repeat
  std::optional<std::size_t> most;  ///< repeat; nullopt: no bound
};

/// Throws RegexError, TooLarge for groups nested too deeply.
RegexTree read_regex(std::string_view regex);

}  // namespace thalweg::schema
