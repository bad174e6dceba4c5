#include "serve/api_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/error.hpp"
#include "base/mapped_file.hpp"

namespace thalweg::serve {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

bool is_plain(std::string_view key) {
  return std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// Compares every byte, wherever the first difference is.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < b.size(); ++i) {
    difference |= static_cast<unsigned char>(b[i]) ^ static_cast<unsigned char>(i < a.size() ? a[i] : 0);
  }
  return difference == 0;
}

}  // namespace

ApiKeys ApiKeys::read(const std::filesystem::path& file) {
  ApiKeys result;
  std::istringstream lines(read_text_file(file, kMostBytes));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const std::string subject = fmt::format("{}:{}", file.string(), number);
    if (!is_plain(line))
      throw InputError(subject, "a key of printable ASCII characters without blanks", "others");
    if (result.salt_of(line) && result.required()) throw InputError(subject, "this key stands here twice");
    // The key itself is what separates its owner's cache; it is hashed before it is stored anywhere.
    result.keys_.push_back({line, "key:" + line});
  }
  if (result.keys_.empty()) throw InputError(file.string(), "at least one key", "none");
  return result;
}

std::optional<std::string> ApiKeys::salt_of(std::string_view key) const {
  if (keys_.empty()) return std::string();
  std::optional<std::string> salt;
  for (const Entry& entry : keys_) {
    if (equal_in_constant_time(key, entry.key)) salt = entry.salt;
  }
  return salt;
}

}  // namespace thalweg::serve
