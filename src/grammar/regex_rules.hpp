// Regular expressions as rules of a grammar.
#pragma once

#include <string>
#include <string_view>

namespace thalweg::grammar {

/// The right side of an EBNF rule that matches exactly what `regex` matches as a whole. The syntax is what
/// ECMAScript and Python share: literals, `.` (all but line feed and carriage return), classes, `\d \w \s`
/// and their opposites (ASCII; `\s` the blanks of Unicode), groups, alternatives, greedy and lazy quantifiers
/// (which are the same here), `^` first and `$` last in an alternative of the whole. Throws
/// InputError(`subject`) with the byte offset for everything else (look-around, back-references, word
/// borders, properties, flags, lone surrogates) and for expressions beyond GrammarLimits.
std::string regex_rule(std::string_view regex, const std::string& subject);

}  // namespace thalweg::grammar
