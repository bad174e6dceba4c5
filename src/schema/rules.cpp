#include "schema/rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "schema/schema.hpp"

namespace thalweg::schema {
namespace {

constexpr std::size_t kMostParts = 400'000;
constexpr std::size_t kMostBytes = 4 << 20;  // of literals

std::string spelled(char32_t c, std::string_view escaped) {
  if (c < 0x80 && escaped.find(static_cast<char>(c)) != escaped.npos)
    return std::string("\\") + static_cast<char>(c);
  if (c >= 0x20 && c < 0x7F) return std::string(1, static_cast<char>(c));
  return c < 0x10000 ? fmt::format("\\u{:04x}", static_cast<unsigned>(c))
                     : fmt::format("\\U{:08x}", static_cast<unsigned>(c));
}

CharacterRanges without_surrogates(const CharacterRanges& ranges) {
  CharacterRanges result;
  for (const CharacterRange& range : ranges) {
    if (range.first < 0xD800) result.push_back({range.first, std::min<char32_t>(range.last, 0xD7FF)});
    if (range.last > 0xDFFF) result.push_back({std::max<char32_t>(range.first, 0xE000), range.last});
  }
  return result;
}

}  // namespace

PartId Rules::add(Part part) {
  bytes_ += part.text.size();
  if (parts_.size() >= kMostParts || bytes_ > kMostBytes) throw TooLarge();
  parts_.push_back(std::move(part));
  return static_cast<PartId>(parts_.size() - 1);
}

PartId Rules::literal(std::string text) {
  if (text.empty()) return nothing();
  return add({Kind::literal, std::move(text), {}, {}, 0, {}});
}

PartId Rules::characters(CharacterRanges ranges) {
  ranges = without_surrogates(normalised(std::move(ranges)));
  if (ranges.empty()) return impossible();
  if (ranges.size() == 1 && ranges.front().first == ranges.front().last)
    return literal(utf8_of(ranges.front().first));
  return add({Kind::characters, {}, std::move(ranges), {}, 0, {}});
}

PartId Rules::reference(RuleId rule) {
  return add({Kind::reference, {}, {}, {rule}, 0, {}});
}

PartId Rules::sequence(const std::vector<PartId>& parts) {
  std::vector<PartId> flat;
  for (const PartId part : parts) {
    const Part inner = parts_[part];
    if (inner.kind == Kind::sequence) {
      flat.insert(flat.end(), inner.parts.begin(), inner.parts.end());
    } else {
      flat.push_back(part);
    }
  }
  std::vector<PartId> merged;
  for (const PartId part : flat) {
    const bool joins =
        !merged.empty() && parts_[part].kind == Kind::literal && parts_[merged.back()].kind == Kind::literal;
    if (joins) {
      merged.back() = literal(parts_[merged.back()].text + parts_[part].text);
    } else {
      merged.push_back(part);
    }
  }
  if (merged.size() == 1) return merged.front();
  return add({Kind::sequence, {}, {}, std::move(merged), 0, {}});
}

PartId Rules::choice(const std::vector<PartId>& parts) {
  if (parts.size() == 1) return parts.front();
  return add({Kind::choice, {}, {}, parts, 0, {}});
}

PartId Rules::repeat(PartId part, std::size_t least, std::optional<std::size_t> most) {
  if (most) most = std::min(*most, SchemaLimits::repetitions);
  if (least > SchemaLimits::repetitions) throw TooLarge();
  if (most && *most < least) return impossible();
  if (most && *most == 0) return nothing();
  if (most && *most == 1 && least == 1) return part;
  return add({Kind::repeat, {}, {}, {part}, least, most});
}

RuleId Rules::add_rule() {
  if (rules_.size() >= SchemaLimits::rules) throw TooLarge();
  rules_.push_back(0);
  return static_cast<RuleId>(rules_.size() - 1);
}

PartId Rules::rule_of(PartId part) {
  const RuleId rule = add_rule();
  define(rule, part);
  return reference(rule);
}

bool Rules::can_end(PartId id, const std::vector<bool>& rules) const {
  const Part& part = parts_[id];
  const auto ends = [&](PartId inner) { return can_end(inner, rules); };
  switch (part.kind) {
    case Kind::reference:
      return rules[part.parts.front()];
    case Kind::sequence:
      return std::all_of(part.parts.begin(), part.parts.end(), ends);
    case Kind::choice:
      return std::any_of(part.parts.begin(), part.parts.end(), ends);
    case Kind::repeat:
      return part.least == 0 || ends(part.parts.front());
    default:
      return true;
  }
}

std::vector<bool> Rules::ending_rules() const {
  std::vector<bool> ends(rules_.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t rule = rules_.size(); rule-- > 0;) {
      if (ends[rule] || !can_end(rules_[rule], ends)) continue;
      ends[rule] = true;
      changed = true;
    }
  }
  return ends;
}

/// Writes rules in the order in which they are first referred to.
class Rules::Printer {
 public:
  Printer(const Rules& rules, const std::string& root)
      : rules_(rules), root_(root), ends_(rules.ending_rules()), numbers_(rules.rules_.size(), -1) {}

  std::optional<std::string> print(RuleId start) {
    if (!ends_[start]) return std::nullopt;
    number_of(start);
    std::string text;
    for (std::size_t i = 0; i < order_.size(); ++i)
      text += fmt::format("{} ::= {}\n", name(i), spell(rules_.rules_[order_[i]], Level::choice));
    return text;
  }

 private:
  enum class Level { choice, sequence, atom };

  std::size_t number_of(RuleId rule) {
    if (numbers_[rule] < 0) {
      numbers_[rule] = static_cast<std::int64_t>(order_.size());
      order_.push_back(rule);
    }
    return static_cast<std::size_t>(numbers_[rule]);
  }
  std::string name(std::size_t number) const {
    return number == 0 ? root_ : fmt::format("{}_{}", root_, number);
  }

  static std::string wrapped(const std::string& text, bool needed) {
    return needed ? fmt::format("({})", text) : text;
  }

  std::string spell(PartId id, Level level) {
    const Part& part = rules_.parts_[id];
    switch (part.kind) {
      case Kind::literal: {
        std::string text;
        for (const char32_t c : characters_of(part.text)) text += spelled(c, "\"\\");
        return fmt::format("\"{}\"", text);
      }
      case Kind::characters: {
        std::string text;
        for (const CharacterRange& range : part.ranges) {
          text += spelled(range.first, "\\]^-[");
          if (range.last == range.first) continue;
          text += '-';
          text += spelled(range.last, "\\]^-[");
        }
        return fmt::format("[{}]", text);
      }
      case Kind::reference:
        return name(number_of(part.parts.front()));
      case Kind::sequence: {
        if (part.parts.empty()) return "\"\"";
        std::string text;
        for (const PartId inner : part.parts) {
          if (!text.empty()) text += ' ';
          text += spell(inner, Level::sequence);
        }
        return wrapped(text, level == Level::atom);
      }
      case Kind::choice: {
        std::vector<std::string> branches;
        for (const PartId inner : part.parts) {
          if (!rules_.can_end(inner, ends_)) continue;
          std::string branch = spell(inner, Level::choice);
          if (std::find(branches.begin(), branches.end(), branch) == branches.end())
            branches.push_back(std::move(branch));
        }
        return wrapped(fmt::format("{}", fmt::join(branches, " | ")), level != Level::choice);
      }
      case Kind::repeat:
        return spell_repeat(part);
    }
    return "";
  }

  std::string spell_repeat(const Part& part) {
    if (!rules_.can_end(part.parts.front(), ends_)) return "\"\"";
    // Parentheses always: a quantifier may not follow another.
    const std::string inner = spell(part.parts.front(), Level::choice);
    const bool bare = inner.front() == '[' && rules_.parts_[part.parts.front()].kind == Kind::characters;
    const std::string body = wrapped(inner, !bare);
    if (part.least == 0 && !part.most) return body + "*";
    if (part.least == 0 && *part.most == 1) return body + "?";
    if (!part.most) return part.least == 1 ? body + "+" : fmt::format("{}{{{},}}", body, part.least);
    return fmt::format("{}{{{},{}}}", body, part.least, *part.most);
  }

  const Rules& rules_;
  const std::string& root_;
  std::vector<bool> ends_;
  std::vector<std::int64_t> numbers_;
  std::vector<RuleId> order_;
};

std::optional<std::string> Rules::text(RuleId start, const std::string& root) const {
  return Printer(*this, root).print(start);
}

}  // namespace thalweg::schema
