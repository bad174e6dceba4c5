// Stop strings, text and its cuts from the input; the outcome must be that of a search in the whole text.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/sampling/stop_matcher.hpp"

using thalweg::engine::StopMatcher;
using thalweg::engine::StopStrings;

namespace {

/// Visible text by definition: cut at the first end of a stop string, before the longest that ends there.
std::string visible(const std::string& text, const std::vector<std::string>& strings) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& string : strings) {
      const std::size_t size = string.size();
      if (size > longest && size <= end && text.compare(end - size, size, string) == 0) longest = size;
    }
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

}  // namespace

/// Stop strings end at 0x00, an empty one ends their list; in the text 0x01 cuts.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> fields(1);
  std::size_t i = 0;
  for (; i < size && fields.size() <= 16; ++i) {
    if (data[i] != 0) {
      fields.back() += static_cast<char>(data[i]);
    } else if (fields.back().empty()) {
      break;
    } else {
      fields.emplace_back();
    }
  }
  fields.pop_back();
  StopMatcher matcher(std::make_shared<const StopStrings>(fields));
  std::string text;
  std::string piece;
  std::string shown;
  for (; i < size; ++i) {
    if (data[i] != 1) {
      piece += static_cast<char>(data[i]);
      continue;
    }
    shown += matcher.push(piece).text;
    text += piece;
    piece.clear();
  }
  shown += matcher.push(piece).text;
  text += piece;
  shown += matcher.finish();
  if (shown != visible(text, fields)) std::abort();
  return 0;
}
