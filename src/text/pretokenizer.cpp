#include "text/pretokenizer.hpp"

#include <cstdint>

#include "text/unicode_classes.hpp"
#include "text/utf8.hpp"

namespace thalweg::text {
namespace {

bool is_newline(char32_t c) {
  return c == '\r' || c == '\n';
}
bool is_ascii_letter(char32_t c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}
bool is_cjk(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
}
bool is_word(CharClass c) {
  return c == CharClass::letter || c == CharClass::mark;
}
bool is_sign(CharClass c) {
  return c == CharClass::punctuation || c == CharClass::symbol;
}

}  // namespace

/// A character of the text; past the end, one that belongs to no class and has no length.
struct Pretokenizer::Character {
  char32_t code_point = 0;
  CharClass char_class = CharClass::other;
  std::uint8_t length = 0;
};

Pretokenizer::Character Pretokenizer::read(std::size_t at, std::size_t end) const {
  if (at == end) return {};
  const Utf8Unit unit = read_utf8(text_.substr(at));
  return {unit.code_point, text::char_class(unit.code_point), static_cast<std::uint8_t>(unit.length)};
}

/// End of the run of characters from `begin` of which `belongs` is true.
template <class Predicate>
std::size_t Pretokenizer::run_end(std::size_t begin, std::size_t end, Predicate belongs) const {
  while (begin < end) {
    const Character c = read(begin, end);
    if (!belongs(c)) break;
    begin += c.length;
  }
  return begin;
}

std::string_view Pretokenizer::next() {
  if (at_ == text_.size()) return {};
  if (at_ == cjk_end_) {
    if (at_ == number_end_) number_end_ = number_split_end(at_);
    cjk_end_ = cjk_split_end(at_, number_end_);
  }
  const std::size_t begin = at_;
  at_ = main_split_end(begin, cjk_end_);
  return text_.substr(begin, at_ - begin);
}

std::size_t Pretokenizer::number_split_end(std::size_t begin) const {
  int digits = 0;
  const std::size_t end = run_end(begin, text_.size(), [&](const Character& c) {
    return c.char_class == CharClass::number && ++digits <= 3;
  });
  if (end > begin) return end;
  return run_end(begin, text_.size(), [](const Character& c) { return c.char_class != CharClass::number; });
}

std::size_t Pretokenizer::cjk_split_end(std::size_t begin, std::size_t end) const {
  const bool cjk = is_cjk(read(begin, end).code_point);
  return run_end(begin, end, [&](const Character& c) { return is_cjk(c.code_point) == cjk; });
}

/// End of the match at `begin`, or of the stretch in front of the next match if there is none at `begin`.
std::size_t Pretokenizer::main_split_end(std::size_t begin, std::size_t end) const {
  std::size_t at = begin;
  while (at < end) {
    const std::size_t match = main_match_end(at, end);
    if (match > at) return at == begin ? match : at;
    at += read(at, end).length;
  }
  return end;
}

/// End of what the main expression matches at `begin`, trying its alternatives in order; `begin` if none
/// matches.
std::size_t Pretokenizer::main_match_end(std::size_t begin, std::size_t end) const {
  const Character first = read(begin, end);
  const std::size_t after = begin + first.length;
  const Character second = read(after, end);
  // ASCII punctuation and symbols are exactly the characters of the expression's first class.
  if (first.code_point < 0x80 && is_sign(first.char_class) && is_ascii_letter(second.code_point)) {
    return run_end(after, end, [](const Character& c) { return is_ascii_letter(c.code_point); });
  }
  const bool may_lead = !is_newline(first.code_point) && !is_sign(first.char_class);
  if (is_word(first.char_class) || (may_lead && is_word(second.char_class))) {
    return run_end(after, end, [](const Character& c) { return is_word(c.char_class); });
  }
  if (is_sign(first.char_class) || (first.code_point == ' ' && is_sign(second.char_class))) {
    const std::size_t signs = run_end(after, end, [](const Character& c) { return is_sign(c.char_class); });
    return run_end(signs, end, [](const Character& c) { return is_newline(c.code_point); });
  }
  return blank_match_end(begin, end);
}

/// The three alternatives for blanks: up to the last newline of the run; else all of a run that ends the
/// piece; else the run without its last blank, which goes with what follows.
std::size_t Pretokenizer::blank_match_end(std::size_t begin, std::size_t end) const {
  std::size_t last = begin;  // start of the run's last character
  std::size_t after_newline = begin;
  const std::size_t stop = run_end(begin, end, [&, at = begin](const Character& c) mutable {
    if (c.char_class != CharClass::space) return false;
    last = at;
    at += c.length;
    if (is_newline(c.code_point)) after_newline = at;
    return true;
  });
  if (after_newline > begin) return after_newline;
  return stop == end || last == begin ? stop : last;
}

}  // namespace thalweg::text
