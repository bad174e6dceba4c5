#include "grammar/ebnf_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include "base/error.hpp"
#include "grammar/limits.hpp"
#include "text/utf8.hpp"

namespace thalweg::grammar {
namespace {

constexpr std::array<std::string_view, 6> kMacros = {"TagDispatch",      "Token", "ExcludeToken",
                                                     "TokenTagDispatch", "Regex", "Substring"};

class EbnfScan {
 public:
  EbnfScan(std::string_view text, const std::string& subject) : text_(text), subject_(subject) {}

  void run() {
    while (at_ < text_.size()) step();
  }

 private:
  [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw InputError(fmt::format("{}: line {}", subject_, line), expected, found);
  }

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void step() {
    const char c = peek();
    if (c == '#') {
      at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
    } else if (c == '"') {
      skip_quoted('"', "a literal that ends in its line");
    } else if (c == '[') {
      skip_quoted(']', "a class that ends in its line");
    } else if (c == '(') {
      if (peek(1) == '=') refuse("no assertions", "'(='");
      if (++depth_ > GrammarLimits::depth)
        refuse(fmt::format("groups nested at most {} deep", GrammarLimits::depth), "more");
      ++at_;
    } else if (c == ')') {
      if (depth_ > 0) --depth_;
      ++at_;
    } else if (c == '{') {
      check_counts();
    } else if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
      check_name();
    } else {
      ++at_;
    }
  }

  void skip_quoted(char end, const char* expected) {
    std::size_t i = at_ + 1;
    while (i < text_.size() && text_[i] != end) {
      if (text_[i] == '\n' || text_[i] == '\r') refuse(expected, "the end of the line");
      i += text_[i] == '\\' ? 2 : 1;
    }
    if (i >= text_.size()) refuse(expected, "the end of the grammar");
    at_ = i + 1;
  }

  void check_counts() {
    const std::size_t end = std::min(text_.find('}', at_), text_.size());
    std::int64_t value = 0;
    for (; at_ < end; ++at_) {
      const bool digit = std::isdigit(static_cast<unsigned char>(peek())) != 0;
      value = digit ? value * 10 + (peek() - '0') : 0;
      if (value > GrammarLimits::repetitions)
        refuse(fmt::format("counts of at most {}", GrammarLimits::repetitions), "more");
    }
  }

  void check_name() {
    const std::size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_' || peek() == '-' ||
           peek() == '.') {
      ++at_;
    }
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (std::find(kMacros.begin(), kMacros.end(), name) != kMacros.end())
      refuse("no macros", fmt::format("'{}'", name));
    if (peek() != '[') return;
    const std::size_t close = text_.find(']', at_);
    const std::size_t after =
        text_.find_first_not_of(" \t", close == std::string_view::npos ? close : close + 1);
    if (after != std::string_view::npos && text_.substr(after, 3) == "::=")
      refuse("no rule options", fmt::format("'{}['", name));
  }

  std::string_view text_;
  const std::string& subject_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
};

}  // namespace

void check_ebnf(std::string_view ebnf, const std::string& subject) {
  if (ebnf.size() > GrammarLimits::text_bytes) {
    throw InputError(subject, fmt::format("at most {} bytes", GrammarLimits::text_bytes),
                     fmt::format("{}", ebnf.size()));
  }
  if (const std::size_t bad = text::find_ill_formed_utf8(ebnf); bad != ebnf.size())
    throw InputError(subject, "UTF-8", fmt::format("an ill-formed byte at {}", bad));
  if (ebnf.find('\0') != std::string_view::npos) throw InputError(subject, "text", "a zero byte");
  EbnfScan(ebnf, subject).run();
}

}  // namespace thalweg::grammar
