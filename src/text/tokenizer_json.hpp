// The text of a tokenizer.json, taken apart: its two long lists as they stream by, the rest as a document.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace thalweg::text {

/// Many short strings in one allocation.
class StringList {
 public:
  void add(std::string_view s) {
    text_ += s;
    ends_.push_back(text_.size());
  }
  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string text_;
  std::vector<std::size_t> ends_;
};

struct TokenizerJson {
  StringList vocabulary;                     ///< keys of model.vocab, in the order of the file
  std::vector<std::int64_t> vocabulary_ids;  ///< their values
  StringList merges;                         ///< left, right, left, right, ... of model.merges
  bool has_merges = false;                   ///< model.merges is there, and is an array
  Json rest;                                 ///< everything else; model.vocab and model.merges are null in it
};

/// Reads the syntax only. Throws InputError naming `subject` and the place for malformed JSON, repeated
/// members, nesting beyond 16 levels, and wrong forms inside model.vocab (string → integer) and model.merges
/// ("a b" or ["a", "b"]).
TokenizerJson read_tokenizer_json(std::string_view json, const std::string& subject);

}  // namespace thalweg::text
