// Grammars written by users, looked over before they are compiled.
#pragma once

#include <string>
#include <string_view>

namespace thalweg::grammar {

/// Throws InputError(`subject`) naming the line if `ebnf` is not valid UTF-8, is beyond GrammarLimits, or has
/// what is not offered: macros (`Token(...)`, `TagDispatch(...)` and the like), rule options (`name[...]
/// ::=`) and assertions (`(= ...)`). Whether the rest is a grammar is the compiler's to say.
void check_ebnf(std::string_view ebnf, const std::string& subject);

}  // namespace thalweg::grammar
