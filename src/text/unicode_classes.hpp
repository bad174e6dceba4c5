// The character classes of the split rules: general categories and White_Space of Unicode 16.0.
#pragma once

#include <cstdint>

namespace thalweg::text {

/// No two of these overlap: White_Space characters are separators or controls.
enum class CharClass : std::uint8_t {
  other = 0,        ///< controls, format characters, unassigned, private use, surrogates
  number = 1,       ///< \p{N}
  letter = 2,       ///< \p{L}
  mark = 3,         ///< \p{M}
  punctuation = 4,  ///< \p{P}
  symbol = 5,       ///< \p{S}
  space = 6,        ///< \s
};

namespace detail {
/// Block number of each 256 code points, and the blocks: 16 words of 16 classes of 4 bits, the first class
/// lowest.
extern const std::uint8_t class_block_index[0x110000 / 256];
extern const std::uint64_t class_blocks[];
}  // namespace detail

/// Class of `code_point`, which must be below 0x110000.
inline CharClass char_class(char32_t code_point) {
  const std::uint64_t word =
      detail::class_blocks[detail::class_block_index[code_point >> 8] * 16 + ((code_point >> 4) & 15)];
  return static_cast<CharClass>((word >> (4 * (code_point & 15))) & 15);
}

}  // namespace thalweg::text
