// Regular expressions of `pattern` and `patternProperties` as automata.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "schema/automaton.hpp"

namespace thalweg::schema {

/// What an expression has that is not supported; the message names it and its place.
class RegexError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The strings in which `regex` matches somewhere, as ECMAScript's `u` flag has it: characters are code
/// points,
/// `\d \w` are ASCII, `\s` is all blanks. Anchors may stand anywhere. Throws RegexError for look-around,
/// back-references, word borders, properties and what is malformed; TooLarge for expressions whose automaton
/// would exceed SchemaLimits.
Language search_language(std::string_view regex, Work& work);

}  // namespace thalweg::schema
