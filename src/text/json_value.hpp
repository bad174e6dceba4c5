// Is this text JSON?
#pragma once

#include <cstddef>
#include <string_view>

namespace thalweg::text {

/// True if `text` is one JSON value (blanks around it allowed) within what parse_json reads with a nesting
/// limit of `depth`, however many members its objects have: valid UTF-8, no lone surrogates, numbers within
/// the range of a double. Builds nothing; time is linear.
bool is_json_value(std::string_view text, std::size_t depth);

}  // namespace thalweg::text
