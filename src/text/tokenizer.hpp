// The tokenizer of DeepSeek-V4.1: byte-level byte-pair encoding, read from a checkpoint's tokenizer.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::text {

/// Index of a vocabulary entry. Valid ids are [0, vocab_size()); every function below answers for any value.
using TokenId = std::int32_t;

/// Text to token ids and back. Immutable once made: any number of threads may read one object.
///
/// The file may leave ids unused (gaps); such an id behaves like one outside the vocabulary.
class Tokenizer {
 public:
  /// Reads `tokenizer_json`. Throws InputError naming the file and the field if the file is not a byte-level
  /// BPE tokenizer with exactly the options, split rules and added-token behaviour that this class
  /// implements.
  static Tokenizer load(const std::filesystem::path& tokenizer_json);

  /// As load(), from the text of the file; `subject` stands for the file name in errors.
  static Tokenizer parse(std::string_view json, const std::string& subject);

  Tokenizer(Tokenizer&& other) noexcept;
  Tokenizer& operator=(Tokenizer&& other) noexcept;
  ~Tokenizer();

  /// Highest id + 1.
  int vocab_size() const;

  /// Ids of `text`, with added tokens recognised wherever they are spelled: leftmost first, the longest of
  /// those that start at one place; the text between them is encoded as by encode_plain(). No BOS is added.
  /// Throws InputError naming the byte offset if `text` is not valid UTF-8. Time is O(n log n) in the worst
  /// case.
  std::vector<TokenId> encode(std::string_view text) const;

  /// Ids of `text` as ordinary text: no added token is recognised. Decoding gives `text` back.
  /// Throws InputError naming the byte offset if `text` is not valid UTF-8.
  std::vector<TokenId> encode_plain(std::string_view text) const;

  /// Id of the added token spelled exactly `spelling`; none if there is no such added token.
  std::optional<TokenId> added_token(std::string_view spelling) const;

  /// True for added tokens; false for ordinary tokens and for ids outside the vocabulary.
  bool is_added(TokenId id) const;

  /// The bytes that `id` stands for: possibly not UTF-8 by themselves, empty for ids outside the vocabulary.
  /// An added token's bytes are its spelling. The view lives as long as the tokenizer.
  std::string_view token_bytes(TokenId id) const;

  /// Concatenated token bytes, each maximal ill-formed part (Unicode table 3-7) replaced by U+FFFD. Ids
  /// outside the vocabulary add nothing.
  std::string decode(std::span<const TokenId> ids) const;

 private:
  struct Data;
  explicit Tokenizer(std::unique_ptr<const Data> data);

  std::unique_ptr<const Data> data_;
};

}  // namespace thalweg::text
