// Who may use the service.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::serve {

/// A list of keys; an empty one lets everybody in. Immutable, thread-safe to read.
class ApiKeys {
 public:
  ApiKeys() = default;

  /// One key a line; blank lines and lines that start with `#` are skipped. Throws InputError naming the file
  /// and the line for keys with blanks or control characters in them, repeated keys and files without any.
  static ApiKeys read(const std::filesystem::path& file);

  bool required() const { return !keys_.empty(); }

  /// The cache salt of the key's owner, or none if the key is not in the list. Time does not depend on how
  /// much of a key is right. Without a list every key, or none, has the empty salt.
  std::optional<std::string> salt_of(std::string_view key) const;

 private:
  struct Entry {
    std::string key;
    std::string salt;
  };
  std::vector<Entry> keys_;
};

}  // namespace thalweg::serve
