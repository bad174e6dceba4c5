#include "text/tokenizer_byte_alphabet.hpp"

#include <array>

#include "text/utf8.hpp"

namespace thalweg::text {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

/// Characters of the alphabet end below this: 68 bytes do not stand for themselves.
constexpr unsigned alphabet_end = 0x100 + 68;

struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<std::int16_t, alphabet_end> byte{};  // -1: not in the alphabet
};

constexpr Alphabet alphabet = [] {
  Alphabet a;
  a.byte.fill(-1);
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    a.character[byte] = stands_for_itself(byte) ? byte : next++;
    a.byte[a.character[byte]] = static_cast<std::int16_t>(byte);
  }
  return a;
}();

}  // namespace

char32_t byte_character(std::uint8_t byte) {
  return alphabet.character[byte];
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  while (!spelling.empty()) {
    const Utf8Unit unit = read_utf8(spelling);
    if (unit.code_point >= alphabet_end || alphabet.byte[unit.code_point] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(alphabet.byte[unit.code_point]));
    spelling.remove_prefix(unit.length);
  }
  return bytes;
}

std::string spelling_of_bytes(std::string_view bytes) {
  std::string spelling;
  for (const char byte : bytes) append_utf8(spelling, byte_character(static_cast<std::uint8_t>(byte)));
  return spelling;
}

}  // namespace thalweg::text
