// A grammar under construction, and its text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/automaton.hpp"

namespace thalweg::schema {

using PartId = std::uint32_t;
using RuleId = std::uint32_t;

/// Parts are immutable and may be shared; rules are parts with a name, which may refer to each other.
class Rules {
 public:
  /// Throws TooLarge beyond SchemaLimits.
  PartId literal(std::string text);
  /// One of these characters; surrogates never belong to them.
  PartId characters(CharacterRanges ranges);
  PartId reference(RuleId rule);
  PartId sequence(const std::vector<PartId>& parts);
  PartId choice(const std::vector<PartId>& parts);
  PartId repeat(PartId part, std::size_t least, std::optional<std::size_t> most);
  PartId optional(PartId part) { return repeat(part, 0, 1); }
  PartId nothing() { return sequence({}); }   ///< matches the empty text
  PartId impossible() { return choice({}); }  ///< matches no text

  RuleId add_rule();
  void define(RuleId rule, PartId part) { rules_[rule] = part; }
  PartId rule_of(PartId part);

  /// EBNF of what `start` reaches, without branches that can never end; nullopt if `start` matches nothing.
  std::optional<std::string> text(RuleId start, const std::string& root) const;

 private:
  enum class Kind : std::uint8_t { literal, characters, reference, sequence, choice, repeat };
  struct Part {
    Kind kind;
    std::string text;  // literal
    CharacterRanges ranges;
    std::vector<std::uint32_t> parts;  // reference: the rule
    std::size_t least;
    std::optional<std::size_t> most;
  };
  class Printer;

  PartId add(Part part);
  bool can_end(PartId part, const std::vector<bool>& rules) const;
  std::vector<bool> ending_rules() const;

  std::vector<Part> parts_;
  std::vector<PartId> rules_;
  std::size_t bytes_ = 0;
};

}  // namespace thalweg::schema
