#include "app/settings.hpp"

#include <algorithm>
#include <cstdint>

#include "base/error.hpp"

namespace thalweg::app {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '-';
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

/// Takes the underscores out of a TOML number; false if `word` is not one (decimal integers and floats only).
bool read_number(std::string_view word, std::string& digits) {
  std::size_t at = 0;
  const auto run = [&] {  // digits, single underscores between them
    const std::size_t begin = at;
    while (at < word.size() &&
           (is_digit(word[at]) || (word[at] == '_' && at > begin && is_digit(word[at - 1])))) {
      if (word[at] != '_') digits += word[at];
      ++at;
    }
    return at > begin && word[at - 1] != '_';
  };
  const auto sign = [&] {
    if (at < word.size() && (word[at] == '+' || word[at] == '-')) {
      if (word[at] == '-') digits += '-';
      ++at;
    }
  };
  sign();
  const std::size_t whole = at;
  if (!run()) return false;
  if (word[whole] == '0' && at - whole > 1) return false;  // TOML knows no leading zeros
  if (at < word.size() && word[at] == '.') {
    digits += '.';
    ++at;
    if (!run()) return false;
  }
  if (at < word.size() && (word[at] == 'e' || word[at] == 'E')) {
    digits += 'e';
    ++at;
    sign();
    if (!run()) return false;
  }
  return at == word.size();
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  std::vector<Setting> read() {
    std::vector<Setting> settings;
    for (skip_lines(); !at_end(); skip_lines()) {
      Setting setting = read_setting();
      const auto same = [&](const Setting& other) { return other.key == setting.key; };
      if (const auto first = std::find_if(settings.begin(), settings.end(), same); first != settings.end()) {
        fail(fmt::format("\"{}\" is already set in line {}", setting.key, first->line));
      }
      settings.push_back(std::move(setting));
    }
    return settings;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw UsageError(fmt::format("{}:{}: {}", file_, line_, problem));
  }

  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }
  bool take_line_end() {
    if (text_.substr(at_).starts_with("\r\n")) ++at_;
    if (!take('\n')) return false;
    ++line_;
    return true;
  }
  void skip_comment() {
    skip_blanks();
    if (!take('#')) return;
    while (!at_end() && peek() != '\n' && !text_.substr(at_).starts_with("\r\n")) ++at_;
  }
  void skip_lines() {
    do skip_comment();
    while (take_line_end());
  }

  Setting read_setting() {
    Setting setting;
    setting.line = line_;
    if (peek() == '[')
      fail("tables are not used here: every key stands by itself and is named like an option");
    setting.key = read_key();
    skip_blanks();
    if (peek() == '.') fail(fmt::format("dotted keys are not used here (after \"{}\")", setting.key));
    if (!take('=')) fail(fmt::format("expected = after \"{}\"", setting.key));
    skip_blanks();
    if (take('[')) {
      setting.array = true;
      read_array(setting);
    } else {
      setting.values.push_back(read_value(setting.kind));
    }
    skip_comment();
    if (!at_end() && !take_line_end())
      fail(fmt::format("expected the end of the line after the value of \"{}\"", setting.key));
    return setting;
  }

  std::string read_key() {
    if (peek() == '"' || peek() == '\'') return read_string();
    const std::size_t begin = at_;
    while (is_bare(peek())) ++at_;
    if (at_ == begin) fail("expected a key");
    return std::string(text_.substr(begin, at_ - begin));
  }

  void read_array(Setting& setting) {
    for (skip_lines(); !take(']'); skip_lines()) {
      if (at_end()) fail(fmt::format("the array of \"{}\" has no closing ]", setting.key));
      Setting::Kind kind{};
      setting.values.push_back(read_value(kind));
      if (setting.values.size() > 1 && kind != setting.kind)
        fail("the values of an array must be of one kind");
      setting.kind = kind;
      skip_lines();
      if (!take(',') && peek() != ']')
        fail(fmt::format("expected , or ] in the array of \"{}\"", setting.key));
    }
  }

  std::string read_value(Setting::Kind& kind) {
    if (peek() == '"' || peek() == '\'') {
      kind = Setting::Kind::text;
      return read_string();
    }
    const std::size_t begin = at_;
    while (is_bare(peek()) || peek() == '+' || peek() == '.' || peek() == ':') ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    kind = Setting::Kind::boolean;
    if (word == "true" || word == "false") return std::string(word);
    kind = Setting::Kind::number;
    std::string digits;
    if (read_number(word, digits)) return digits;
    fail(word.empty() ? "expected a value: \"text\", a number, true, false or an array of these"
                      : fmt::format("{} is not a value: text stands in quotes, numbers are decimal", word));
  }

  std::string read_string() {
    const char quote = text_[at_];
    if (text_.substr(at_, 3) == std::string(3, quote))
      fail("multi-line strings are not used here; write \\n");
    ++at_;
    std::string value;
    while (!take(quote)) {
      if (at_end() || peek() == '\n') fail("the string has no closing quote");
      const char c = text_[at_++];
      if (static_cast<unsigned char>(c) < 0x20 && c != '\t') fail("a control character stands in the string");
      if (c == '\\' && quote == '"') {
        read_escape(value);
      } else {
        value += c;
      }
    }
    return value;
  }

  void read_escape(std::string& value) {
    static constexpr std::string_view letters = "btnfr\"\\";
    static constexpr std::string_view meanings = "\b\t\n\f\r\"\\";
    if (const auto which = letters.find(peek()); !at_end() && which != std::string_view::npos) {
      ++at_;
      value += meanings[which];
      return;
    }
    const std::size_t digits = peek() == 'u' ? 4 : peek() == 'U' ? 8 : 0;
    if (digits == 0) fail("unknown escape in the string");
    ++at_;
    std::uint32_t code = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      static constexpr std::string_view hex = "0123456789abcdef";
      const auto digit = at_end() ? std::string_view::npos : hex.find(static_cast<char>(peek() | 0x20));
      if (digit == std::string_view::npos)
        fail(fmt::format("expected {} hexadecimal digits in the escape", digits));
      code = code << 4 | static_cast<std::uint32_t>(digit);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) fail("the escape is not a Unicode character");
    append_utf8(value, code);
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

std::vector<Setting> parse_settings(std::string_view text, const std::string& file) {
  return Reader(text, file).read();
}

}  // namespace thalweg::app
