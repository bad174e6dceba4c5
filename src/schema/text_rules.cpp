#include "schema/text_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "base/json.hpp"

namespace thalweg::schema {
namespace {

constexpr char32_t kLast = 0x10FFFF;
constexpr std::size_t kWrittenOut = 16;  // longer strings count their characters, which masks pay for
constexpr int kInlineDepth = 30;         // states written into one another before one becomes a rule

bool holds(const CharacterRanges& ranges, char32_t first, char32_t last) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const CharacterRange& range) { return range.first <= first && last <= range.last; });
}

CharacterRanges clipped(const CharacterRanges& ranges, char32_t first, char32_t last) {
  CharacterRanges result;
  for (const CharacterRange& range : ranges) {
    if (range.first <= last && range.last >= first)
      result.push_back({std::max(range.first, first), std::min(range.last, last)});
  }
  return result;
}

}  // namespace

std::string quoted(const std::string& text) {
  return Json(text).dump();
}

/// Writes an automaton as rules: states that are reached in one way are written where they are reached,
/// states that lead to themselves become repetitions. In JSON texts the closing quote is part of what an
/// accepting state leads to, and repetition is recursion on the right: a mask then knows without looking
/// further which tokens may end the string (thousands of times quicker than `"\"" (character)* "\""`).
class AutomatonRules {
 public:
  AutomatonRules(TextRules& texts, const Automaton& automaton, bool json)
      : texts_(texts),
        rules_(texts.rules_),
        automaton_(automaton),
        json_(json),
        live_(live_states(automaton)) {
    edges_.resize(automaton.states());
    ways_in_.resize(automaton.states());
    ways_in_[0] = 1;
    for (std::uint32_t state = 0; state < automaton.states(); ++state) {
      if (live_[state]) find_edges(state);
    }
  }

  PartId write() {
    if (!live_[0]) return rules_.impossible();
    const PartId start = part_of(0, 0);
    while (!waiting_.empty()) {
      const std::uint32_t state = waiting_.front();
      waiting_.pop_front();
      rules_.define(*named_.at(state), body(state, 0));
    }
    return start;
  }

 private:
  void find_edges(std::uint32_t state) {
    for (std::size_t c = 0; c < automaton_.classes(); ++c) {
      const std::uint32_t target = automaton_.next[state * automaton_.classes() + c];
      if (!live_[target]) continue;
      const char32_t last = c + 1 < automaton_.classes() ? automaton_.starts[c + 1] - 1 : kLast;
      edges_[state][target].push_back({automaton_.starts[c], last});
    }
    for (const auto& [target, ranges] : edges_[state]) {
      if (target != state || json_) ++ways_in_[target];
    }
  }

  PartId part_of(std::uint32_t state, int depth) {
    const bool trivial = edges_[state].empty();
    if (trivial || (ways_in_[state] == 1 && depth < kInlineDepth)) return body(state, depth);
    std::optional<RuleId>& rule = named_[state];
    if (!rule) {
      rule = rules_.add_rule();
      waiting_.push_back(state);
    }
    return rules_.reference(*rule);
  }

  PartId body(std::uint32_t state, int depth) {
    std::vector<PartId> branches;
    std::optional<PartId> loop;
    if (automaton_.accepts[state]) branches.push_back(json_ ? rules_.literal("\"") : rules_.nothing());
    for (const auto& [target, ranges] : edges_[state]) {
      const PartId step = json_ ? texts_.escaped(ranges) : rules_.characters(ranges);
      if (target == state && !json_) {
        loop = rules_.repeat(step, 0, std::nullopt);
      } else {
        branches.push_back(rules_.sequence({step, part_of(target, depth + 1)}));
      }
    }
    const PartId rest = rules_.choice(branches);
    return loop ? rules_.sequence({*loop, rest}) : rest;
  }

  TextRules& texts_;
  Rules& rules_;
  const Automaton& automaton_;
  const bool json_;
  std::vector<bool> live_;
  std::vector<std::map<std::uint32_t, CharacterRanges>> edges_;
  std::vector<int> ways_in_;
  std::map<std::uint32_t, std::optional<RuleId>> named_;
  std::deque<std::uint32_t> waiting_;
};

PartId TextRules::content(const Language& language, bool json) {
  return AutomatonRules(*this, *language, json).write();
}

PartId TextRules::string(const Language& language) {
  const auto [found, fresh] = strings_.try_emplace(language, 0);
  if (!fresh) return found->second;
  const PartId part = rules_.rule_of(rules_.sequence({rules_.literal("\""), content(language, true)}));
  return strings_[language] = part;
}

PartId TextRules::string(const StringShape& shape) {
  if (!is_all(shape.language) || (shape.least == 0 && !shape.most)) return string(shape.language);
  if (shape.most && *shape.most < shape.least) return rules_.impossible();
  const PartId quote = rules_.literal("\"");
  if (shape.most.value_or(shape.least) > kWrittenOut)
    return rules_.sequence({quote, rules_.repeat(character(), shape.least, shape.most), quote});
  return rules_.sequence({quote, lengths(shape.least, shape.most)});
}

// Written out, not referred to: where a rule ends inside a token, its mask is not known when it is compiled.
PartId TextRules::character_before(PartId rest) {
  return rules_.choice({rules_.sequence({unescaped(), rest}), rules_.sequence({escape(), rest})});
}

// Strings of a length, closing quote included: a rule for each character that may be the last one.
PartId TextRules::lengths(std::size_t least, std::optional<std::size_t> most) {
  const auto [found, fresh] = lengths_.try_emplace({least, most}, 0);
  if (!fresh) return found->second;
  const PartId quote = rules_.literal("\"");
  PartId rest = quote;
  if (!most) {
    const RuleId more = rules_.add_rule();
    rest = rules_.reference(more);
    rules_.define(more, rules_.choice({quote, character_before(rest)}));
  }
  for (std::size_t length = most.value_or(least); length-- > 0;) {
    const PartId longer = character_before(rest);
    rest = rules_.rule_of(length < least ? longer : rules_.choice({quote, longer}));
  }
  return lengths_[{least, most}] = rest;
}

PartId TextRules::number(const Language& language) {
  return content(language, false);
}

PartId TextRules::any_number() {
  if (!any_number_) {
    const CharacterRanges digits{{'0', '9'}};
    const PartId whole = rules_.choice(
        {rules_.literal("0"), rules_.sequence({rules_.characters({{'1', '9'}}),
                                               rules_.repeat(rules_.characters(digits), 0, 19)})});
    const PartId fraction =
        rules_.sequence({rules_.literal("."), rules_.repeat(rules_.characters(digits), 1, 20)});
    const PartId exponent = rules_.sequence({rules_.characters({{'e', 'e'}, {'E', 'E'}}),
                                             rules_.optional(rules_.characters({{'+', '+'}, {'-', '-'}})),
                                             rules_.repeat(rules_.characters(digits), 1, 2)});
    any_number_ = rules_.rule_of(rules_.sequence(
        {rules_.optional(rules_.literal("-")), whole, rules_.optional(fraction), rules_.optional(exponent)}));
  }
  return *any_number_;
}

// Any character in any spelling; what lies beyond U+FFFF may be a pair of escapes.
PartId TextRules::character() {
  if (!character_) character_ = rules_.rule_of(rules_.choice({unescaped(), escape()}));
  return *character_;
}

PartId TextRules::unescaped() {
  return rules_.characters({{0x20, 0x21}, {0x23, 0x5B}, {0x5D, kLast}});
}

PartId TextRules::escape() {
  if (!escape_) {
    const CharacterRanges hex{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    const auto of = [&](CharacterRanges ranges) { return rules_.characters(std::move(ranges)); };
    const PartId d = of({{'D', 'D'}, {'d', 'd'}});
    const PartId two = rules_.sequence({of(hex), of(hex)});
    const PartId code = rules_.choice(
        {rules_.sequence({of({{'0', '9'}, {'A', 'C'}, {'a', 'c'}, {'E', 'F'}, {'e', 'f'}}), of(hex), two}),
         rules_.sequence({d, of({{'0', '7'}}), two}),
         rules_.sequence({d, of({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), two, rules_.literal("\\u"), d,
                          of({{'C', 'F'}, {'c', 'f'}}), two})});
    escape_ = rules_.rule_of(rules_.sequence(
        {rules_.literal("\\"), rules_.choice({of({{'"', '"'},
                                                  {'\\', '\\'},
                                                  {'/', '/'},
                                                  {'b', 'b'},
                                                  {'f', 'f'},
                                                  {'n', 'n'},
                                                  {'r', 'r'},
                                                  {'t', 't'}}),
                                              rules_.sequence({rules_.literal("u"), code})})}));
  }
  return *escape_;
}

// Every control character below U+0020.
PartId TextRules::control_escape() {
  if (!control_escape_) {
    const PartId low =
        rules_.sequence({rules_.literal("0"), rules_.characters({{'0', '7'}, {'b', 'b'}, {'e', 'f'}})});
    const PartId high = rules_.sequence({rules_.literal("1"), rules_.characters({{'0', '9'}, {'a', 'f'}})});
    control_escape_ = rules_.rule_of(rules_.sequence(
        {rules_.literal("\\"),
         rules_.choice({rules_.characters({{'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}}),
                        rules_.sequence({rules_.literal("u00"), rules_.choice({low, high})})})}));
  }
  return *control_escape_;
}

PartId TextRules::escaped(const CharacterRanges& given) {
  const CharacterRanges ranges = normalised(given);
  if (holds(ranges, 0, kLast)) return character();
  std::vector<PartId> branches;
  CharacterRanges raw = clipped(ranges, 0x20, 0x21);
  for (const CharacterRange& range : clipped(ranges, 0x23, 0x5B)) raw.push_back(range);
  for (const CharacterRange& range : clipped(ranges, 0x5D, kLast)) raw.push_back(range);
  if (!raw.empty()) branches.push_back(rules_.characters(std::move(raw)));
  if (holds(ranges, '"', '"')) branches.push_back(rules_.literal("\\\""));
  if (holds(ranges, '\\', '\\')) branches.push_back(rules_.literal("\\\\"));
  if (holds(ranges, 0, 0x1F)) {
    branches.push_back(control_escape());
  } else {
    for (char32_t c = 0; c < 0x20; ++c) {
      if (!holds(ranges, c, c)) continue;
      const std::string text = quoted(std::string(1, static_cast<char>(c)));
      branches.push_back(rules_.literal(text.substr(1, text.size() - 2)));
    }
  }
  return rules_.choice(branches);
}

}  // namespace thalweg::schema
