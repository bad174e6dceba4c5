// Finds vocabulary entries by spelling while a tokenizer is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/tokenizer_json.hpp"

namespace thalweg::text {

/// A hash index over `spellings`, which must outlive it and not grow.
class SpellingIndex {
 public:
  explicit SpellingIndex(const StringList& spellings);

  /// Position of the first entry spelled so.
  std::optional<std::size_t> find(std::string_view spelling) const;

  /// Position of the first entry whose spelling an earlier one has already.
  std::optional<std::size_t> repeated() const { return repeated_; }

 private:
  std::size_t slot_of(std::string_view spelling, std::uint64_t hash) const;

  const StringList& spellings_;
  std::vector<std::uint64_t> slots_;  // upper half of the hash, position + 1; 0 is empty
  std::optional<std::size_t> repeated_;
};

}  // namespace thalweg::text
