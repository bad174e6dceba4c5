#include "grammar/regex_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

#include "base/error.hpp"
#include "grammar/character_set.hpp"
#include "grammar/limits.hpp"
#include "text/utf8.hpp"

namespace thalweg::grammar {
namespace {

/// A part of the rule, and how long it is with repetitions written out.
struct Part {
  std::string rule;
  std::int64_t size = 0;
};

CharacterSet digits() {
  return {{{'0', '9'}}};
}
CharacterSet word_characters() {
  return {{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}};
}
CharacterSet blanks() {
  return {{{'\t', '\r'},
           {' ', ' '},
           {0xA0, 0xA0},
           {0x1680, 0x1680},
           {0x2000, 0x200A},
           {0x2028, 0x2029},
           {0x202F, 0x202F},
           {0x205F, 0x205F},
           {0x3000, 0x3000},
           {0xFEFF, 0xFEFF}}};
}

std::optional<CharacterSet> named_class(char32_t name) {
  switch (name) {
    case 'd':
      return digits();
    case 'D':
      return digits().complement();
    case 'w':
      return word_characters();
    case 'W':
      return word_characters().complement();
    case 's':
      return blanks();
    case 'S':
      return blanks().complement();
    default:
      return std::nullopt;
  }
}

/// Recursive descent over the expression.
class RegexReader {
 public:
  RegexReader(std::string_view regex, const std::string& subject) : text_(regex), subject_(subject) {}

  Part read() {
    Part part = alternatives(0);
    if (!at_end()) refuse("no ')' without its '('");
    return part;
  }

 private:
  [[noreturn]] void refuse(const std::string& expected, std::size_t at) const {
    const std::string found = at < text_.size() ? fmt::format("'{}'", text_.substr(at, 12)) : "its end";
    throw InputError(subject_, fmt::format("{} at byte {}", expected, at), found);
  }
  [[noreturn]] void refuse(const std::string& expected) const { refuse(expected, at_); }

  bool at_end() const { return at_ == text_.size(); }
  bool next_is(char c) const { return !at_end() && text_[at_] == c; }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  char32_t take_character() {
    if (at_end()) refuse("a character");
    const text::Utf8Unit unit = text::read_utf8(text_.substr(at_));
    at_ += unit.length;
    return unit.code_point;
  }

  Part alternatives(std::size_t depth) {
    if (depth > GrammarLimits::depth)
      refuse(fmt::format("groups nested at most {} deep", GrammarLimits::depth));
    Part all = sequence(depth);
    while (take('|')) {
      const Part next = sequence(depth);
      all.rule += " | " + next.rule;
      all.size += next.size;
      check_size(all.size);
    }
    return all;
  }

  Part sequence(std::size_t depth) {
    Part all;
    if (depth == 0) take('^');
    while (!at_end() && !next_is('|') && !next_is(')')) {
      if (depth == 0 && next_is('$') && (at_ + 1 == text_.size() || text_[at_ + 1] == '|')) {
        ++at_;
        break;
      }
      const Part next = repeated(depth);
      all.rule += (all.rule.empty() ? "" : " ") + next.rule;
      all.size += next.size;
      check_size(all.size);
    }
    if (all.rule.empty()) all.rule = "\"\"";
    return all;
  }

  void check_size(std::int64_t size) const {
    if (size <= GrammarLimits::expanded) return;
    throw InputError(
        subject_, fmt::format("at most {} characters with repetitions written out", GrammarLimits::expanded),
        "more");
  }

  Part repeated(std::size_t depth) {
    Part part = atom(depth);
    std::int64_t most = 1;
    if (take('*') || take('+')) {
      part.rule = fmt::format("({}){}", part.rule, text_[at_ - 1]);
    } else if (take('?')) {
      part.rule = fmt::format("({})?", part.rule);
    } else if (take('{')) {
      const std::int64_t low = count();
      std::optional<std::int64_t> high = low;
      if (take(',')) high = next_is('}') ? std::nullopt : std::optional(count());
      if (!take('}')) refuse("'}' after the counts of a repetition");
      if (high && *high < low) refuse("a range of counts that rises");
      most = std::max<std::int64_t>(1, high.value_or(low));
      part.rule = high ? fmt::format("({}){{{},{}}}", part.rule, low, *high)
                       : fmt::format("({}){{{},}}", part.rule, low);
    } else {
      return part;
    }
    take('?');  // lazy: another order of attempts, the same language
    if (next_is('*') || next_is('+') || next_is('?') || next_is('{')) refuse("one quantifier for a part");
    part.size = std::max<std::int64_t>(1, part.size) * most;
    check_size(part.size);
    return part;
  }

  std::int64_t count() {
    const std::size_t begin = at_;
    std::int64_t value = 0;
    while (!at_end() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = std::min<std::int64_t>(value * 10 + (text_[at_++] - '0'), GrammarLimits::expanded + 1);
    }
    if (at_ == begin) refuse("a count");
    if (value > GrammarLimits::expanded)
      refuse(fmt::format("a count of at most {}", GrammarLimits::expanded), begin);
    return value;
  }

  Part atom(std::size_t depth) {
    const std::size_t begin = at_;
    const char32_t c = take_character();
    switch (c) {
      case '(':
        return group(depth, begin);
      case '[':
        return character_class(begin);
      case '.':
        return of_set(CharacterSet{{{'\n', '\n'}, {'\r', '\r'}}}.complement());
      case '\\':
        return escape(begin);
      case '*':
      case '+':
      case '?':
      case '{':
        refuse("something to repeat", begin);
      case '^':
      case '$':
        refuse("'^' only first and '$' only last in an alternative outside of groups", begin);
      default:
        return {fmt::format("\"{}\"", spell_character(c)), 1};
    }
  }

  Part group(std::size_t depth, std::size_t begin) {
    if (take('?')) {
      take('P');
      if (take('<')) {
        const std::size_t name = at_;
        while (!at_end() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || next_is('_')))
          ++at_;
        if (at_ == name || !take('>')) refuse("a group without look-around", begin);
      } else if (!take(':')) {
        refuse("a group without look-around, flags or conditions", begin);
      }
    }
    Part part = alternatives(depth + 1);
    if (!take(')')) refuse("')' for the group", begin);
    part.rule = fmt::format("({})", part.rule);
    return part;
  }

  Part of_set(const CharacterSet& set) const { return {set.spelling(), 1}; }

  Part escape(std::size_t begin) {
    if (!at_end()) {
      if (const auto set = named_class(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
        return of_set(*set);
      }
    }
    return {fmt::format("\"{}\"", spell_character(escaped_character(begin))), 1};
  }

  char32_t hex(int digits, std::size_t begin) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = at_end() ? '\0' : text_[at_];
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0)
        refuse(fmt::format("{} hexadecimal digits", digits), begin);
      value = value * 16 + static_cast<char32_t>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
      ++at_;
    }
    return value;
  }

  // A character given by an escape that is no class; `begin` is the backslash.
  char32_t escaped_character(std::size_t begin) {
    const char32_t c = take_character();
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'x':
        return hex(2, begin);
      case 'u':
        return unicode_escape(begin);
      default:
        break;
    }
    const bool is_name = c >= 0x80 || std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (is_name) refuse("an escape that is supported", begin);
    return c;
  }

  char32_t unicode_escape(std::size_t begin) {
    const char32_t first = hex(4, begin);
    if (first < 0xD800 || first > 0xDFFF) return first;
    if (first > 0xDBFF || !take('\\') || !take('u')) refuse("a surrogate pair", begin);
    const char32_t second = hex(4, begin);
    if (second < 0xDC00 || second > 0xDFFF) refuse("a surrogate pair", begin);
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
  }

  Part character_class(std::size_t begin) {
    const bool negated = take('^');
    CharacterSet set;
    while (!next_is(']')) {
      if (at_end()) refuse("']' for the class", begin);
      const std::size_t start = at_;
      char32_t first = 0;
      const auto whole = class_member(first);
      const bool is_range = next_is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (whole) {
        if (is_range) refuse("a range between two characters", start);
        set.add(*whole);
        continue;
      }
      char32_t last = first;
      if (is_range) {
        ++at_;
        if (class_member(last)) refuse("a range between two characters", start);
        if (last < first) refuse("a range that rises", start);
      }
      set.add(first, last);
    }
    ++at_;
    if (negated) return of_set(set.complement());
    if (set.ranges.empty()) refuse("a class with members", begin);
    return of_set(set.complement().complement());
  }

  // A named class, or one character in `single`.
  std::optional<CharacterSet> class_member(char32_t& single) {
    const std::size_t begin = at_;
    single = take_character();
    if (single == '[' && (next_is(':') || next_is('=') || next_is('.')))
      refuse("no class by name inside a class", begin);
    if (single != '\\') return std::nullopt;
    if (!at_end()) {
      if (auto set = named_class(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
        return set;
      }
    }
    if (take('b')) {
      single = '\b';
    } else {
      single = escaped_character(begin);
    }
    return std::nullopt;
  }

  std::string_view text_;
  const std::string& subject_;
  std::size_t at_ = 0;
};

}  // namespace

std::string regex_rule(std::string_view regex, const std::string& subject) {
  if (regex.size() > GrammarLimits::text_bytes) {
    throw InputError(subject, fmt::format("at most {} bytes", GrammarLimits::text_bytes),
                     fmt::format("{}", regex.size()));
  }
  if (const std::size_t bad = text::find_ill_formed_utf8(regex); bad != regex.size())
    throw InputError(subject, "UTF-8", fmt::format("an ill-formed byte at {}", bad));
  return RegexReader(regex, subject).read().rule;
}

}  // namespace thalweg::grammar
