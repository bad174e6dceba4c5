#include "grammar/rules.hpp"

#include <fmt/format.h>

#include <string_view>

#include "base/error.hpp"
#include "grammar/character_set.hpp"
#include "grammar/ebnf_check.hpp"
#include "grammar/limits.hpp"
#include "grammar/regex_rules.hpp"
#include "schema/schema.hpp"
#include "text/utf8.hpp"

namespace thalweg::grammar {
namespace {

// RFC 8259, with one blank or one line end and its indentation between parts. The shape decides what a mask
// costs: strings recur on their right side, and assertions say what may follow them (`<` after an argument of
// a call), so that nearly every token is decided when the rules are compiled.
constexpr std::string_view kJsonRules = R"(
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

std::string choice_rules(const Constraint& constraint, const std::string& subject) {
  if (constraint.choices.empty()) throw InputError(subject, "at least one text", "none");
  if (constraint.choices.size() > GrammarLimits::choices) {
    throw InputError(subject, fmt::format("at most {} texts", GrammarLimits::choices),
                     fmt::format("{}", constraint.choices.size()));
  }
  std::string rule = "root ::= ";
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < constraint.choices.size(); ++i) {
    const std::string& text = constraint.choices[i];
    const std::string item = fmt::format("{}[{}]", subject, i);
    if (text.empty()) throw InputError(item, "at least one character", "an empty text");
    if (text::find_ill_formed_utf8(text) != text.size()) throw InputError(item, "not valid UTF-8");
    bytes += text.size();
    rule += (i > 0 ? " | " : "") + spell_literal(text);
  }
  if (bytes > GrammarLimits::text_bytes) {
    throw InputError(subject, fmt::format("at most {} bytes together", GrammarLimits::text_bytes),
                     fmt::format("{}", bytes));
  }
  return rule + "\n";
}

// The markup of calls (docs/output_parsing.md). A string argument is free text: only the markup token, which
// no ordinary token spells, ends it.
std::string tool_rules(const Constraint& constraint, std::int32_t markup_token) {
  if (markup_token < 0) throw InputError("tools", "a tokenizer with the token of tool markup", "none");
  if (constraint.tools.empty()) throw InputError("tools", "at least one tool", "none");
  if (constraint.tools.size() > GrammarLimits::tools) {
    throw InputError("tools", fmt::format("at most {}", GrammarLimits::tools),
                     fmt::format("{}", constraint.tools.size()));
  }
  std::string names;
  for (const ToolForm& tool : constraint.tools)
    names += (names.empty() ? "" : " | ") + spell_literal(tool.name);
  return fmt::format(R"(root ::= {}invoke ("\n" invoke)* "\n</" mark " calls>"
mark ::= Token({})
invoke ::= "<" mark " invoke name=\"" name "\">\n" (parameter+ | "\n") "</" mark " invoke>"
name ::= {}
parameter ::= "<" mark " parameter name=\"" [^"<>\n\r] [^"<>\n\r]* "\" string=\"" value "</" mark " parameter>\n"
value ::= "true\">" [^]* | "false\">" json_value
{})",
                     constraint.calls_required ? "" : "\" calls>\\n\" ", markup_token, names, kJsonRules);
}

std::string schema_rules(const Constraint& constraint, const std::string& subject) {
  try {
    return schema::to_ebnf(schema::parse_schema(constraint.text));
  } catch (const InputError& error) {
    throw InputError(subject, error.what());
  }
}

}  // namespace

std::string subject_of(const Constraint& constraint) {
  if (!constraint.field.empty()) return constraint.field;
  switch (constraint.kind) {
    case Constraint::Kind::json_schema:
      return "json_schema";
    case Constraint::Kind::json_object:
      return "json_object";
    case Constraint::Kind::regex:
      return "regex";
    case Constraint::Kind::ebnf:
      return "grammar";
    case Constraint::Kind::choice:
      return "choice";
    case Constraint::Kind::tool_calls:
      break;
  }
  return "tools";
}

std::string to_rules(const Constraint& constraint, std::int32_t markup_token) {
  const std::string subject = subject_of(constraint);
  switch (constraint.kind) {
    case Constraint::Kind::json_schema:
      return schema_rules(constraint, subject);
    case Constraint::Kind::json_object:
      return "root ::= json_object\n" + std::string(kJsonRules);
    case Constraint::Kind::regex:
      return "root ::= " + regex_rule(constraint.text, subject) + "\n";
    case Constraint::Kind::ebnf:
      check_ebnf(constraint.text, subject);
      return constraint.text;
    case Constraint::Kind::choice:
      return choice_rules(constraint, subject);
    case Constraint::Kind::tool_calls:
      break;
  }
  return tool_rules(constraint, markup_token);
}

}  // namespace thalweg::grammar
