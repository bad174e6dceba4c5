// The alphabet in which byte-level vocabularies spell bytes: one printable character for each of the 256.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace thalweg::text {

/// The character for `byte`: itself for 33-126, 161-172 and 174-255, the others U+0100 upwards in order.
char32_t byte_character(std::uint8_t byte);

/// The bytes that `spelling` stands for; none if one of its characters is not in the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

/// The spelling of `bytes`: the inverse of bytes_of_spelling().
std::string spelling_of_bytes(std::string_view bytes);

}  // namespace thalweg::text
