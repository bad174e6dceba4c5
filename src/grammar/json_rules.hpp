// Any JSON, as rules of a grammar.
#pragma once

#include <string_view>

namespace thalweg::grammar {

/// RFC 8259, with one blank or one line end and its indentation between parts. The shape decides what a mask
/// costs: strings recur on their right side, and assertions say what may follow them (`<` after an argument
/// of a call), so that nearly every token is decided when the rules are compiled.
inline constexpr std::string_view kJsonRules = R"(
json_object ::= "{" json_ws (json_member (json_ws "," json_ws json_member)* json_ws)? "}"
json_member ::= json_key json_ws ":" json_ws json_value
json_array ::= "[" json_ws (json_value (json_ws "," json_ws json_value)* json_ws)? "]"
json_value ::= json_object | json_array | json_text | json_number | "true" | "false" | "null"
json_key ::= "\"" json_key_rest (= json_ws ":")
json_key_rest ::= "\"" | [^"\\\x00-\x1F] json_key_rest | "\\" json_escape json_key_rest
json_text ::= "\"" json_text_rest (= json_ws [,}\]<])
json_text_rest ::= "\"" | [^"\\\x00-\x1F] json_text_rest | "\\" json_escape json_text_rest (= json_ws [,}\]<])
json_escape ::= ["\\/bfnrt] | "u" [0-9A-Fa-f] [0-9A-Fa-f] [0-9A-Fa-f] [0-9A-Fa-f]
json_number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [+\-]? [0-9]+)?
json_ws ::= "" | " " | "\n" [ \t]*
)";

}  // namespace thalweg::grammar
