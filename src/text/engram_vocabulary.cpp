#include "text/engram_vocabulary.hpp"

#include <utf8proc.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "text/tokenizer_byte_alphabet.hpp"
#include "text/unicode_classes.hpp"
#include "text/utf8.hpp"

namespace thalweg::text {
namespace {

constexpr char32_t only_space = 0xE000;  // stands for a text of one space while blanks are stripped

bool is_blank(char32_t c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/// Code points of `text` after NFKC and NFD, which together are NFKD.
std::u32string decompose(std::string_view text) {
  std::u32string out(text.size(), U'\0');
  while (true) {
    static_assert(sizeof(char32_t) == sizeof(utf8proc_int32_t));
    const auto needed = utf8proc_decompose(
        reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
        reinterpret_cast<utf8proc_int32_t*>(out.data()), static_cast<utf8proc_ssize_t>(out.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT));
    if (needed < 0) throw WorkError(fmt::format("decomposing a token: {}", utf8proc_errmsg(needed)));
    const bool fitted = static_cast<std::size_t>(needed) <= out.size();
    out.resize(static_cast<std::size_t>(needed));
    if (fitted) return out;
  }
}

bool is_combining_mark(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
         category == UTF8PROC_CATEGORY_ME;
}

/// The text with accents, case and the amount of blanks taken away; empty if nothing is left.
std::string normalized(std::string_view text) {
  std::u32string kept;
  for (const char32_t c : decompose(text)) {
    if (is_combining_mark(c)) continue;
    // One character for one: U+0130, whose lower case has two, is decomposed by now.
    const auto lower = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
    if (!is_blank(lower)) {
      kept.push_back(lower);
    } else if (kept.empty() || kept.back() != U' ') {
      kept.push_back(U' ');
    }
  }
  if (kept == U" ") kept = only_space;
  const auto is_space = [](char32_t c) { return char_class(c) == CharClass::space; };
  std::size_t begin = 0, end = kept.size();
  while (begin < end && is_space(kept[begin])) ++begin;
  while (end > begin && is_space(kept[end - 1])) --end;
  std::string out;
  for (std::size_t i = begin; i < end; ++i) append_utf8(out, kept[i] == only_space ? U' ' : kept[i]);
  return out;
}

/// What tokens of one class have in common.
std::string class_key(const Tokenizer& tokenizer, TokenId id) {
  const TokenId ids[] = {id};
  const std::string text = tokenizer.decode(ids);
  if (text.find("\uFFFD") != std::string::npos) {
    return tokenizer.is_added(id) ? text : spelling_of_bytes(tokenizer.token_bytes(id));
  }
  const std::string key = normalized(text);
  return key.empty() ? text : key;
}

}  // namespace

std::vector<std::int32_t> engram_vocabulary(const Tokenizer& tokenizer) {
  std::vector<std::int32_t> map;
  map.reserve(static_cast<std::size_t>(tokenizer.vocab_size()));
  std::unordered_map<std::string, std::int32_t> classes;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const auto next = static_cast<std::int32_t>(classes.size());
    map.push_back(classes.try_emplace(class_key(tokenizer, id), next).first->second);
  }
  return map;
}

}  // namespace thalweg::text
