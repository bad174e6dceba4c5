#include "serve/output_constraint.hpp"

#include <fmt/format.h>

#include "wire/fields.hpp"

namespace thalweg::serve {
namespace {

using grammar::Constraint;

void add_tools(const std::vector<text::Tool>& tools, Constraint& constraint) {
  for (const text::Tool& tool : tools) {
    if (tool.strict.value_or(false)) {
      wire::rejected(fmt::format("tools: strict is not supported yet, send strict: false for {}", tool.name),
                     "tools");
    }
    constraint.tools.push_back({tool.name});
  }
}

// Also the tools that become known later in the conversation.
Constraint tool_constraint(const wire::Request& request, bool required) {
  Constraint constraint{.kind = Constraint::Kind::tool_calls, .calls_required = required};
  add_tools(request.conversation.tools, constraint);
  for (const text::Message& message : request.conversation.messages) {
    if (const auto* system = std::get_if<text::SystemMessage>(&message))
      add_tools(system->new_tools, constraint);
  }
  return constraint;
}

}  // namespace

std::optional<Constraint> output_constraint(const wire::Request& request, const text::SpecialTokens& specials,
                                            const char* format_field) {
  const auto& wanted = request.inference.constraint;
  if (!wanted) return std::nullopt;
  using Kind = wire::OutputConstraint::Kind;
  Constraint constraint;
  switch (wanted->kind) {
    case Kind::tool_call:
      return tool_constraint(request, false);
    case Kind::tool_call_required:
      return tool_constraint(request, true);
    case Kind::json:
      if (!wanted->text.empty()) {
        wire::rejected(fmt::format("{}: json_schema is not supported yet, use json_object", format_field),
                       format_field);
      }
      constraint.kind = Constraint::Kind::json_object;
      break;
    case Kind::regex:
      constraint.kind = Constraint::Kind::regex;
      constraint.text = wanted->text;
      constraint.field = fmt::format("{}.regex", format_field);
      break;
  }
  const text::ParserStage stage = request.parsing.stage;
  if (stage == text::ParserStage::reasoning || stage == text::ParserStage::reasoning_continuation)
    constraint.after_token = specials.end_think;
  return constraint;
}

}  // namespace thalweg::serve
