#include "text/utf8.hpp"

#include <cstdint>

namespace thalweg::text {
namespace {

/// What a lead byte promises: length of the sequence and the range of its second byte; length 0 for no lead
/// byte.
struct Lead {
  std::uint8_t length, second_low, second_high;
};

constexpr Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};  // no overlong forms
  if (byte == 0xED) return {3, 0x80, 0x9F};  // no surrogates
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // nothing above U+10FFFF
  return {0, 0, 0};
}

constexpr char32_t replacement = 0xFFFD;

}  // namespace

Utf8Unit read_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const Lead lead = lead_of(byte(0));
  if (lead.length == 1) return {Utf8State::complete, 1, byte(0)};
  if (lead.length == 0) return {Utf8State::ill_formed, 1, replacement};
  char32_t code_point = byte(0) & (0x7F >> lead.length);
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Utf8State::unfinished, i, replacement};
    const std::uint8_t low = i == 1 ? lead.second_low : 0x80;
    const std::uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Utf8State::ill_formed, i, replacement};
    code_point = code_point << 6 | (byte(i) & 0x3F);
  }
  return {Utf8State::complete, lead.length, code_point};
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  const auto put_rest = [&](int shift) { put(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put_rest(0);
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put_rest(6);
    put_rest(0);
  } else {
    put(0xF0 | code_point >> 18);
    put_rest(12);
    put_rest(6);
    put_rest(0);
  }
}

std::size_t find_ill_formed_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Unit unit = read_utf8(text.substr(at));
    if (unit.state != Utf8State::complete) return at;
    at += unit.length;
  }
  return at;
}

std::string replace_ill_formed_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t good = find_ill_formed_utf8(text);
    out += text.substr(0, good);
    text.remove_prefix(good);
    if (text.empty()) break;
    append_utf8(out, replacement);
    text.remove_prefix(read_utf8(text).length);
  }
  return out;
}

}  // namespace thalweg::text
