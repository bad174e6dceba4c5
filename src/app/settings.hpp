// Reads the part of TOML that a configuration file needs: plain keys with scalar or array values.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::app {

/// One line `key = value` of a configuration file.
struct Setting {
  enum class Kind { text, number, boolean };

  std::string key;
  Kind kind = Kind::text;  ///< of every value
  bool array = false;      ///< written in [ ]
  std::vector<std::string>
      values;            ///< as a command line would spell them: text without quotes, "true", "1.5"
  std::size_t line = 0;  ///< counted from 1
};

/// Parses TOML (https://toml.io/en/v1.0.0) restricted to comments, bare and quoted keys, one-line strings,
/// numbers without inf and nan, booleans, and arrays of one of these. Throws UsageError naming `file` and the
/// line for anything malformed, for a key that stands twice, and for tables, dates and multi-line strings,
/// which no option takes.
std::vector<Setting> parse_settings(std::string_view text, const std::string& file);

}  // namespace thalweg::app
