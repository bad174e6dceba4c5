// Which tokenizer.json files are supported: everything in them but vocabulary, merges and added tokens.
#pragma once

#include <string>

#include "base/json.hpp"

namespace thalweg::text {

/// Checks the members of the file's root object and of `model`. Throws InputError naming `subject` and the
/// first field that asks for anything but what Tokenizer does: no normaliser, the split rules of
/// Pretokenizer, byte-level BPE without dropout, unknown token, byte fallback or whole-piece look-up, and no
/// post-processing.
void check_tokenizer_options(const Json& root, const std::string& subject);

/// Throws InputError(`subject`: `path`) for a value that is not as `expected`; long values are shortened.
[[noreturn]] void refuse_value(const std::string& subject, const std::string& path,
                               const std::string& expected, const Json& found);

}  // namespace thalweg::text
