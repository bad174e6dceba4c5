#include "serve/output_constraint.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/json.hpp"

namespace thalweg::serve {
namespace {

using grammar::Constraint;

// Strict tools have their definitions under `$def` (text/strict_schema.hpp).
Json standard_schema(const Json& schema) {
  if (!schema.is_structured()) return schema;
  Json result = schema.is_array() ? Json::array() : Json::object();
  for (const auto& [name, value] : schema.items()) {
    if (schema.is_array()) {
      result.push_back(standard_schema(value));
    } else if (name == "$ref" && value.is_string()) {
      constexpr std::string_view kOwn = "#/$def/";
      const auto text = value.get<std::string>();
      result[name] = text.rfind(kOwn, 0) == 0 ? "#/$defs/" + text.substr(kOwn.size()) : text;
    } else {
      result[name == "$def" ? "$defs" : name] = standard_schema(value);
    }
  }
  return result;
}

void add_tools(const std::vector<text::Tool>& tools, Constraint& constraint) {
  for (const text::Tool& tool : tools) {
    grammar::ToolForm form{tool.name};
    if (tool.strict.value_or(false)) form.parameters = to_text(standard_schema(tool.parameters));
    constraint.tools.push_back(std::move(form));
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

// A schema of strict mode: objects that list properties are closed and have all of them. (The rewriting for
// the prompt, text/strict_schema.hpp, has checked it, but drops keywords that an answer must still obey.)
void close_objects(Json& schema) {
  if (schema.is_array()) {
    for (Json& item : schema) close_objects(item);
  }
  if (!schema.is_object()) return;
  for (const char* name : {"properties", "$defs", "definitions"}) {
    if (!schema.contains(name) || !schema[name].is_object()) continue;
    for (auto& member : schema[name].items()) close_objects(member.value());
  }
  for (const char* name : {"items", "prefixItems", "anyOf", "oneOf", "allOf"}) {
    if (schema.contains(name)) close_objects(schema[name]);
  }
  if (!schema.contains("properties") || !schema["properties"].is_object()) return;
  Json names = Json::array();
  for (const auto& member : schema["properties"].items()) names.push_back(member.key());
  schema["required"] = std::move(names);
  schema["additionalProperties"] = false;
}

std::string schema_text(const text::ResponseFormat& format) {
  Json schema = format.schema;
  if (format.strict) close_objects(schema);
  return to_text(schema);
}

// Chat Completions wraps the schema once more.
std::string schema_field(std::string_view format_field) {
  return fmt::format("{}{}.schema", format_field, format_field == "response_format" ? ".json_schema" : "");
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
      if (wanted->text.empty()) {
        constraint.kind = Constraint::Kind::json_object;
      } else {
        constraint.kind = Constraint::Kind::json_schema;
        constraint.text = schema_text(request.conversation.response_format);
        constraint.field = schema_field(format_field);
      }
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
