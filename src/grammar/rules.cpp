#include "grammar/rules.hpp"

#include <fmt/format.h>

#include <string_view>

#include "base/error.hpp"
#include "grammar/character_set.hpp"
#include "grammar/ebnf_check.hpp"
#include "grammar/json_rules.hpp"
#include "grammar/limits.hpp"
#include "grammar/regex_rules.hpp"
#include "grammar/tool_rules.hpp"
#include "schema/schema.hpp"
#include "text/utf8.hpp"

namespace thalweg::grammar {
namespace {

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
    case Constraint::Kind::json_object:
      return "json_object";
    case Constraint::Kind::json_schema:
      return "json_schema";
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
    case Constraint::Kind::json_object:
      return "root ::= json_object\n" + std::string(kJsonRules);
    case Constraint::Kind::json_schema:
      return schema_rules(constraint, subject);
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
  return tool_rules(constraint, markup_token, subject);
}

}  // namespace thalweg::grammar
