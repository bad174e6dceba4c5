#include "wire/tools.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "text/strict_schema.hpp"

namespace thalweg::wire {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool is_strict(const text::Tool& tool) {
  return tool.strict.value_or(false);
}

}  // namespace

void check_tool_name(const std::string& name, const std::string& path) {
  if (name.empty()) {
    rejected(
        fmt::format(
            "Invalid '{}': empty string. Expected a string with minimum length 1, but got an empty string "
            "instead.",
            path),
        path);
  }
  if (!std::all_of(name.begin(), name.end(), is_name_character)) {
    rejected(
        fmt::format("Invalid '{}': string does not match pattern. Expected a string that matches the pattern "
                    "'^[a-zA-Z0-9_-]+$'.",
                    path),
        path);
  }
}

void ToolList::add(text::Tool tool, const std::string& path) {
  if (!names_.insert(tool.name).second) rejected("Tool names must be unique.", path);
  tools_.push_back(std::move(tool));
}

void ToolList::add_later(text::Tool tool) {
  if (names_.insert(tool.name).second) tools_.push_back(std::move(tool));
}

Json read_parameters(Fields& tool, std::string_view name, const std::string& tool_name) {
  const Json* schema = tool.object(name);
  if (schema == nullptr) return Json::object();
  const std::string path = tool.path(name);
  const auto type = schema->find("type");
  const Json found = type == schema->end() ? Json() : *type;
  if (found != "object") {
    rejected(fmt::format(
                 "Invalid schema for function '{}': schema must be a JSON Schema of 'type: \"object\"', got "
                 "'type: {}'.",
                 tool_name, to_text(found)),
             path);
  }
  try {
    text::check_schema_form(*schema);
  } catch (const text::SchemaError& error) {
    rejected(fmt::format("Invalid schema for function '{}': {}", tool_name, error.what()), path);
  }
  return *schema;
}

std::optional<WantedTools> named_choice(std::string_view text) {
  if (text == "auto") return WantedTools{};
  if (text == "none") return WantedTools{text::ToolChoice::none, {}};
  if (text == "required") return WantedTools{text::ToolChoice::required, {}};
  return std::nullopt;
}

namespace {

// Leaves only the tool called `name`, also where tools arrive later. It is shown at the start if no message
// brings it.
void keep_only(const std::string& name, text::Conversation& conversation) {
  const auto other = [&](const text::Tool& tool) { return tool.name != name; };
  std::erase_if(conversation.tools, other);
  if (conversation.tools.empty()) {
    rejected(
        fmt::format(
            "Invalid value for 'tool_call': no function named '{}' was specified in the 'tools' parameter.",
            name),
        "tool_choice");
  }
  bool arrives_later = false;
  std::erase_if(conversation.messages, [&](text::Message& message) {
    auto* system = std::get_if<text::SystemMessage>(&message);
    if (system == nullptr || system->new_tools.empty()) return false;
    std::erase_if(system->new_tools, other);
    arrives_later = arrives_later || !system->new_tools.empty();
    return system->new_tools.empty() && system->content.empty();
  });
  if (!arrives_later) conversation.tools.front().deferred = false;
}

// Parameters in the strict subset; none at all become an object without properties.
void rewrite_if_strict(text::Tool& tool) {
  if (!is_strict(tool)) return;
  if (tool.parameters.empty()) tool.parameters["type"] = "object";
  try {
    tool.parameters = text::strict_schema(tool.parameters);
  } catch (const text::SchemaError& error) {
    rejected(error.what(), "tools");
  }
}

void settle_strict(text::Conversation& conversation) {
  auto& tools = conversation.tools;
  const auto strict = std::count_if(tools.begin(), tools.end(), is_strict);
  if (strict != 0 && strict != std::ssize(tools)) {
    rejected("Cannot use strict tool with non-strict tool in the same request", "tools");
  }
  for (text::Tool& tool : tools) rewrite_if_strict(tool);
  for (text::Message& message : conversation.messages) {
    auto* system = std::get_if<text::SystemMessage>(&message);
    if (system == nullptr) continue;
    for (text::Tool& tool : system->new_tools) rewrite_if_strict(tool);
  }
}

}  // namespace

void apply_tools(ToolList& tools, const WantedTools& wanted, text::Conversation& conversation) {
  conversation.tools = tools.take();
  conversation.tool_choice = wanted.choice;
  if (wanted.choice == text::ToolChoice::none) return;
  if (wanted.choice == text::ToolChoice::required && conversation.tools.empty()) {
    conversation.tool_choice = text::ToolChoice::automatic;
    return;
  }
  if (wanted.name) keep_only(*wanted.name, conversation);
  if (wanted.choice == text::ToolChoice::required && conversation.thinking) {
    rejected("Thinking mode does not support this tool_choice", "tool_choice");
  }
  settle_strict(conversation);
}

text::ResponseFormat read_json_schema(Fields& format) {
  text::ResponseFormat result;
  result.kind = text::ResponseFormat::Kind::json_schema;
  result.schema = format.require("schema");
  if (!result.schema.is_object() && !result.schema.is_boolean()) {
    malformed(format.path("schema"), "a JSON Schema", result.schema);
  }
  result.strict = format.boolean("strict").value_or(false);
  format.string("name");
  format.string("description");
  try {
    text::check_schema_form(result.schema);
  } catch (const text::SchemaError& error) {
    rejected(fmt::format("Invalid json schema: {}", error.what()), format.path("schema"));
  }
  return result;
}

}  // namespace thalweg::wire
