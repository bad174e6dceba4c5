#include "schema/regex_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "schema/regex.hpp"

namespace thalweg::schema {
namespace {

using Kind = RegexTree::Kind;

constexpr std::size_t kDepth = 64;
constexpr std::size_t kMostRepetitions = 10'000;

CharacterRanges blanks() {
  return {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
          {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}

std::optional<CharacterRanges> named_class(char32_t name) {
  const CharacterRanges digits{{'0', '9'}};
  const CharacterRanges word{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  switch (name) {
    case 'd':
      return digits;
    case 'D':
      return complement(digits);
    case 'w':
      return word;
    case 'W':
      return complement(word);
    case 's':
      return blanks();
    case 'S':
      return complement(blanks());
    default:
      return std::nullopt;
  }
}

int hex_value(char32_t c) {
  if (c >= '0' && c <= '9') return static_cast<int>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<int>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<int>(c - 'A' + 10);
  return -1;
}

bool is_surrogate(char32_t c, char32_t first) {
  return c >= first && c < first + 0x400;
}

class Reader {
 public:
  explicit Reader(std::string_view regex) : text_(characters_of(regex)) {}

  RegexTree read() {
    RegexTree tree = choice(0);
    if (!at_end()) refuse("a ')' without its '('");
    return tree;
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw RegexError(fmt::format("{} at character {}", what, at_));
  }
  bool at_end() const { return at_ == text_.size(); }
  bool next_is(char32_t c, std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() && text_[at_ + ahead] == c;
  }
  bool take(char32_t c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  char32_t take_any() {
    if (at_end()) refuse("an unfinished expression");
    return text_[at_++];
  }

  static RegexTree of_set(CharacterRanges set) {
    RegexTree tree;
    tree.kind = Kind::set;
    tree.set = normalised(std::move(set));
    return tree;
  }
  static RegexTree of_kind(Kind kind, std::vector<RegexTree> children = {}) {
    RegexTree tree;
    tree.kind = kind;
    tree.children = std::move(children);
    return tree;
  }

  RegexTree choice(std::size_t depth) {
    if (depth > kDepth) throw TooLarge();
    std::vector<RegexTree> branches;
    branches.push_back(sequence(depth));
    while (take('|')) branches.push_back(sequence(depth));
    if (branches.size() == 1) return std::move(branches.front());
    return of_kind(Kind::choice, std::move(branches));
  }

  RegexTree sequence(std::size_t depth) {
    std::vector<RegexTree> parts;
    while (!at_end() && !next_is('|') && !next_is(')')) parts.push_back(repeated(depth));
    return of_kind(Kind::sequence, std::move(parts));
  }

  RegexTree repeated(std::size_t depth) {
    RegexTree part = atom(depth);
    std::size_t least = 0;
    std::optional<std::size_t> most;
    if (take('*')) {
    } else if (take('+')) {
      least = 1;
    } else if (take('?')) {
      most = 1;
    } else if (take('{')) {
      least = count();
      most = least;
      if (take(',')) most = next_is('}') ? std::nullopt : std::optional(count());
      if (!take('}')) refuse("a repetition without its '}'");
      if (most && *most < least) refuse("a repetition whose bounds fall");
    } else {
      return part;
    }
    if (part.kind == Kind::start || part.kind == Kind::end) refuse("a repeated anchor");
    take('?');  // lazy: another order of attempts, the same language
    if (next_is('*') || next_is('+') || next_is('?') || next_is('{')) refuse("a repeated quantifier");
    RegexTree tree = of_kind(Kind::repeat);
    tree.children.push_back(std::move(part));
    tree.least = least;
    tree.most = most;
    return tree;
  }

  std::size_t count() {
    std::size_t value = 0;
    if (at_end() || text_[at_] < '0' || text_[at_] > '9') refuse("a repetition without its count");
    while (!at_end() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + (text_[at_++] - '0');
      if (value > kMostRepetitions) throw TooLarge();
    }
    return value;
  }

  RegexTree atom(std::size_t depth) {
    const char32_t c = take_any();
    switch (c) {
      case '(':
        return group(depth);
      case '[':
        return of_set(character_class());
      case '.':
        return of_set(complement(CharacterRanges{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
      case '^':
        return of_kind(Kind::start);
      case '$':
        return of_kind(Kind::end);
      case '\\':
        if (next_is('b') || next_is('B')) refuse("a word border");
        return of_set(escape());
      case '*':
      case '+':
      case '?':
      case '{':
        refuse("nothing to repeat");
      case '}':
      case ']':
        refuse("a bracket without its partner");
      default:
        return of_set({{c, c}});
    }
  }

  RegexTree group(std::size_t depth) {
    if (take('?')) {
      if (take('<')) {
        if (next_is('=') || next_is('!')) refuse("look-behind");
        while (!at_end() && !next_is('>')) ++at_;
        take_any();
      } else if (next_is('=') || next_is('!')) {
        refuse("look-ahead");
      } else if (!take(':')) {
        refuse("flags of a group");
      }
    }
    RegexTree tree = choice(depth + 1);
    if (!take(')')) refuse("a group without its ')'");
    return tree;
  }

  // After the backslash: a class, or one character.
  CharacterRanges escape() {
    if (!at_end()) {
      if (auto set = named_class(text_[at_])) {
        ++at_;
        return *set;
      }
    }
    const char32_t c = escaped_character();
    return {{c, c}};
  }

  char32_t escaped_character() {
    const char32_t c = take_any();
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
      case '0':
        if (!at_end() && text_[at_] >= '0' && text_[at_] <= '9') refuse("an octal escape");
        return 0;
      case 'c':
        return control();
      case 'x':
        return hex(2);
      case 'u':
        return unicode();
      case 'p':
      case 'P':
        refuse("a Unicode property");
      case 'k':
        refuse("a back-reference");
      default:
        break;
    }
    if (c >= '1' && c <= '9') refuse("a back-reference");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) refuse("an unknown escape");
    return c;
  }

  char32_t control() {
    const char32_t c = take_any() | 0x20;
    if (c < 'a' || c > 'z') refuse("an unknown control escape");
    return c - 'a' + 1;
  }

  char32_t hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const int digit = hex_value(take_any());
      if (digit < 0) refuse("a digit that is not hexadecimal");
      value = value * 16 + static_cast<char32_t>(digit);
    }
    return value;
  }

  char32_t unicode() {
    char32_t value = 0;
    if (take('{')) {
      while (!take('}')) {
        const int digit = hex_value(take_any());
        if (digit < 0) refuse("a digit that is not hexadecimal");
        value = value * 16 + static_cast<char32_t>(digit);
        if (value > 0x10FFFF) refuse("a character beyond U+10FFFF");
      }
    } else {
      value = hex(4);
      if (is_surrogate(value, 0xD800) && next_is('\\') && next_is('u', 1)) {
        at_ += 2;
        const char32_t low = hex(4);
        if (!is_surrogate(low, 0xDC00)) refuse("half a surrogate pair");
        return 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
      }
    }
    if (value >= 0xD800 && value <= 0xDFFF) refuse("half a surrogate pair");
    return value;
  }

  CharacterRanges character_class() {
    const bool negated = take('^');
    CharacterRanges set;
    while (!take(']')) {
      char32_t first = 0;
      if (const auto whole = class_member(first)) {
        if (next_is('-') && !next_is(']', 1)) refuse("a range from a class");
        set.insert(set.end(), whole->begin(), whole->end());
        continue;
      }
      char32_t last = first;
      if (next_is('-') && !next_is(']', 1)) {
        ++at_;
        if (class_member(last)) refuse("a range to a class");
        if (last < first) refuse("a range that falls");
      }
      set.push_back({first, last});
    }
    return negated ? complement(set) : set;
  }

  // A named class, or one character in `single`.
  std::optional<CharacterRanges> class_member(char32_t& single) {
    single = take_any();
    if (single != '\\') return std::nullopt;
    if (!at_end()) {
      if (auto set = named_class(text_[at_])) {
        ++at_;
        return set;
      }
    }
    if (take('b')) {
      single = '\b';
    } else {
      single = take('-') ? U'-' : escaped_character();
    }
    return std::nullopt;
  }

  std::u32string text_;
  std::size_t at_ = 0;
};

}  // namespace

RegexTree read_regex(std::string_view regex) {
  return Reader(regex).read();
}

}  // namespace thalweg::schema
