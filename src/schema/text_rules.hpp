// Grammar parts for the texts of strings and numbers.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "schema/automaton.hpp"
#include "schema/rules.hpp"
#include "schema/sets.hpp"

namespace thalweg::schema {

/// Canonical JSON text of a string: quoted, `"`, `\` and control characters escaped as Python and JavaScript
/// do.
std::string quoted(const std::string& text);

class TextRules {
 public:
  explicit TextRules(Rules& rules) : rules_(rules) {}

  /// JSON texts of the strings of a language. Characters that the language leaves open may be escaped in any
  /// way.
  PartId string(const Language& language);
  PartId string(const StringShape& shape);
  /// The strings of a language as they are: digits, signs and points.
  PartId number(const Language& language);
  /// Any number, exponents included, of bounded length.
  PartId any_number();

 private:
  friend class AutomatonRules;
  PartId character();
  PartId unescaped();
  PartId escape();
  PartId character_before(PartId rest);
  PartId control_escape();
  PartId escaped(const CharacterRanges& ranges);
  /// With the closing quote if `json`.
  PartId content(const Language& language, bool json);
  PartId lengths(std::size_t least, std::optional<std::size_t> most);

  Rules& rules_;
  std::optional<PartId> character_;
  std::optional<PartId> escape_;
  std::optional<PartId> control_escape_;
  std::optional<PartId> any_number_;
  std::map<Language, PartId> strings_;
  std::map<std::pair<std::size_t, std::optional<std::size_t>>, PartId> lengths_;
};

}  // namespace thalweg::schema
