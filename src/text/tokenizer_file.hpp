// What a tokenizer.json says, once everything in it is known to be supported.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/bpe.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::text {

/// Ids are below this: a bound on memory for files that are not what they seem, far above any vocabulary.
inline constexpr TokenId token_id_limit = TokenId{1} << 22;

struct AddedToken {
  TokenId id;
  std::string spelling;
};

struct TokenizerFile {
  std::vector<std::string> bytes;  ///< of each id; empty where there is no token
  BytePairEncoder encoder;
  std::vector<AddedToken> added;  ///< in the order of the file; ids and spellings are unique
};

/// Reads and checks the whole file. Throws InputError naming `subject` and the field for anything but a
/// byte-level BPE with the split rules of Pretokenizer, and for ids, merges and added tokens that contradict
/// each other.
TokenizerFile read_tokenizer_file(std::string_view json, const std::string& subject);

}  // namespace thalweg::text
