#include "base/json.hpp"

#include <unordered_set>
#include <vector>

#include "base/error.hpp"

namespace thalweg {
namespace {

// Most members of one object: `Json` keeps them in a list, so that time grows with the square of their
// number.
constexpr std::size_t max_members = 4096;

}  // namespace

Json parse_json(std::string_view text, const std::string& subject, JsonLimits limits) {
  struct Object {
    std::size_t members = 0;
    std::unordered_set<std::string> keys;  // filled only to find repeated ones
  };
  std::vector<Object> open;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) &&
        static_cast<std::size_t>(depth) >= limits.depth) {
      throw InputError(subject, fmt::format("nested deeper than {} levels", limits.depth));
    }
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event != Event::key) return true;
    if (++open.back().members > max_members) {
      throw InputError(subject, fmt::format("more than {} members in one object", max_members));
    }
    if (limits.unique_keys && !open.back().keys.insert(parsed.get_ref<const std::string&>()).second) {
      throw InputError(subject, fmt::format("member \"{}\" appears twice", parsed.get<std::string>()));
    }
    return true;
  };
  if (const auto zero = text.find('\0'); zero != text.npos) {  // nlohmann takes it for the end of the text
    throw InputError(subject, fmt::format("not valid JSON: a zero byte at offset {}", zero));
  }
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const nlohmann::json::exception& error) {
    // nlohmann prefixes "[json.exception.parse_error.101] "; the reader only needs what follows.
    std::string_view message = error.what();
    if (const auto end = message.find("] "); end != std::string_view::npos) message.remove_prefix(end + 2);
    throw InputError(subject, fmt::format("not valid JSON: {}", message));
  }
}

std::string to_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace thalweg
