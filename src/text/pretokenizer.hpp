// The split rules: text to the pieces inside which bytes are merged.
#pragma once

#include <cstddef>
#include <string_view>

namespace thalweg::text {

/// The three regular expressions whose isolated matches, each applied inside the pieces of the one before,
/// are what Pretokenizer computes. Classes are those of Unicode 16.0.
inline constexpr std::string_view split_patterns[] = {
    R"(\p{N}{1,3})",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
};

/// Walks the pieces of one text, in order and without gaps, in linear time. The text must be valid UTF-8 and
/// outlive it.
class Pretokenizer {
 public:
  explicit Pretokenizer(std::string_view text) : text_(text) {}

  /// The next piece, never empty but at the end of the text.
  std::string_view next();

 private:
  struct Character;

  Character read(std::size_t at, std::size_t end) const;
  std::size_t number_split_end(std::size_t begin) const;
  std::size_t cjk_split_end(std::size_t begin, std::size_t end) const;
  std::size_t main_split_end(std::size_t begin, std::size_t end) const;
  std::size_t main_match_end(std::size_t begin, std::size_t end) const;
  std::size_t blank_match_end(std::size_t begin, std::size_t end) const;
  template <class Predicate>
  std::size_t run_end(std::size_t begin, std::size_t end, Predicate belongs) const;

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t number_end_ = 0;  // end of the current piece of the first split
  std::size_t cjk_end_ = 0;     // end of the current piece of the second split, inside the first
};

}  // namespace thalweg::text
