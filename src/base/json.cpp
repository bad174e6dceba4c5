#include "base/json.hpp"

#include <unordered_set>
#include <vector>

#include "base/error.hpp"

namespace thalweg {

Json parse_json(std::string_view text, const std::string& subject, JsonLimits limits) {
  std::vector<std::unordered_set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) &&
        static_cast<std::size_t>(depth) >= limits.depth) {
      throw InputError(subject, fmt::format("nested deeper than {} levels", limits.depth));
    }
    if (!limits.unique_keys) return true;
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get_ref<const std::string&>()).second) {
      throw InputError(subject, fmt::format("member \"{}\" appears twice", parsed.get<std::string>()));
    }
    return true;
  };
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
