// UTF-8, one character at a time, by table 3-7 of the Unicode standard.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thalweg::text {

/// What stands at the start of a text.
enum class Utf8State {
  complete,    ///< one well-formed character
  ill_formed,  ///< a maximal ill-formed part: it is no character whatever follows
  unfinished,  ///< the text ends inside a sequence that more bytes could complete
};

struct Utf8Unit {
  Utf8State state;
  std::size_t length;   ///< bytes taken, at least 1
  char32_t code_point;  ///< U+FFFD unless complete
};

/// Reads the first unit of `text`, which must not be empty.
Utf8Unit read_utf8(std::string_view text);

/// Appends the UTF-8 form of `code_point`, a Unicode scalar value.
void append_utf8(std::string& out, char32_t code_point);

/// Offset of the first byte that is not part of a well-formed character; text.size() if there is none.
std::size_t find_ill_formed_utf8(std::string_view text);

/// `text` with each ill-formed part, also an unfinished one at the end, replaced by U+FFFD.
std::string replace_ill_formed_utf8(std::string_view text);

}  // namespace thalweg::text
