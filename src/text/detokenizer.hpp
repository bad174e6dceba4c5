// Text from tokens as they arrive.
#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer.hpp"

namespace thalweg::text {

/// Decodes a stream of ids, never giving out half a character: each complete sequence is released at once, an
/// ill-formed byte becomes U+FFFD as soon as it is known to be ill-formed, an unfinished sequence waits for
/// the next token.
///
/// The pieces joined are Tokenizer::decode() of all ids, less an unfinished sequence at the very end, which
/// is dropped. A small value: copy it to remember a position, assign it back to roll rejected tokens back.
/// `tokenizer` must outlive it. Not for use by two threads at once.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  /// The text that `id` completes, often empty in the middle of a character. Ids outside the vocabulary add
  /// nothing.
  std::string push(TokenId id);

  /// Ends the stream: an unfinished sequence is dropped, nothing more is owed. The object is ready for a new
  /// stream.
  void finish() { pending_.clear(); }

  /// Bytes of the unfinished sequence held back, at most 3.
  std::string_view pending() const { return pending_; }

 private:
  const Tokenizer* tokenizer_;
  std::string pending_;
};

}  // namespace thalweg::text
