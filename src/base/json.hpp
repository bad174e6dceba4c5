// JSON from outside: one parse function that refuses what nlohmann would accept or choke on later.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace thalweg {

/// Keeps the order of members, which prompts and schemas depend on.
using Json = nlohmann::ordered_json;

struct JsonLimits {
  std::size_t depth = 128;   ///< deepest nesting of arrays and objects accepted
  bool unique_keys = false;  ///< true: a repeated member is an error; false: first place, last value
};

/// Parses one whole JSON document. Throws InputError(subject, ...) with the byte offset for malformed text,
/// invalid UTF-8, lone surrogates, numbers out of range, nesting beyond the limit or (if asked) repeated
/// members.
Json parse_json(std::string_view text, const std::string& subject, JsonLimits limits = {});

/// Compact text; never throws for strings that are not valid UTF-8 (ill-formed bytes become U+FFFD).
std::string to_text(const Json& value);

}  // namespace thalweg
