// JSON objects with very many members, read one member at a time in linear time.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/json.hpp"

namespace thalweg {

/// Called for each member. `container` is "" for a member of the root, else the name of the container it is
/// in.
using JsonMember = std::function<void(std::string_view container, const std::string& name, Json value)>;

/// Reads one whole JSON document whose root is an object, and hands out its members in order. `Json` keeps
/// members in a list, so an object of 100,000 of them costs quadratic time in `parse_json`; this does not. A
/// root member called `container` (if given) must be an object and is handed out member by member too,
/// without a value of its own. Refuses what `parse_json` refuses, and repeated members everywhere, nesting
/// beyond 32 levels, and nested objects of more than 4,096 members. Throws InputError with `subject` and the
/// path of the member at fault.
void read_json_members(std::string_view text, const std::string& subject, std::string_view container,
                       const JsonMember& member);

}  // namespace thalweg
