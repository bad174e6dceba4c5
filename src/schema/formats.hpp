// The formats of strings that can be checked and generated.
#pragma once

#include <optional>
#include <string_view>

namespace thalweg::schema {

/// A regular expression that the whole of a string of `format` matches; nullopt: not known.
std::optional<std::string_view> format_pattern(std::string_view format);

/// Whether the standard names this format at all.
bool is_standard_format(std::string_view format);

}  // namespace thalweg::schema
