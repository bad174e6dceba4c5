// complete(): what follows from a request that has been read.
#include <fmt/format.h>

#include <algorithm>

#include "text/chat_encoding.hpp"
#include "text/strict_schema.hpp"
#include "wire/settings.hpp"

namespace thalweg::wire {
namespace {

using Format = text::ResponseFormat::Kind;

std::string list_tools(const std::vector<text::Tool>& tools) {
  Json list = Json::array();
  for (const text::Tool& tool : tools) {
    Json function = Json::object();
    function["name"] = tool.name;
    function["description"] = tool.description ? Json(*tool.description) : Json();
    function["parameters"] = tool.parameters;
    function["strict"] = tool.strict ? Json(*tool.strict) : Json();
    Json entry = Json::object();
    entry["type"] = "function";
    entry["function"] = std::move(function);
    if (tool.deferred) entry["defer_loading"] = true;
    list.push_back(std::move(entry));
  }
  return to_text(list);
}

Json strict_format(const Json& schema) {
  Json strict = text::strict_schema(schema);
  const auto type = strict.find("type");
  if (type == strict.end() || *type != "object") {
    throw text::SchemaError("The top level of the json schema must be an object.");
  }
  if (strict["properties"].empty()) throw text::SchemaError("An object with no properties is not allowed.");
  return strict;
}

bool has_strict_tool(const text::Conversation& conversation) {
  const auto& tools = conversation.tools;
  return std::any_of(tools.begin(), tools.end(),
                     [](const text::Tool& tool) { return tool.strict.value_or(false); });
}

std::optional<OutputConstraint> constraint_of(const text::Conversation& conversation) {
  using Kind = OutputConstraint::Kind;
  const text::ResponseFormat& format = conversation.response_format;
  const bool strict = format.kind == Format::json_schema && format.strict;
  const Json schema = strict ? strict_format(format.schema) : format.schema;
  if (text::tools_in_force(conversation)) {
    const bool required = conversation.tool_choice == text::ToolChoice::required;
    return OutputConstraint{required ? Kind::tool_call_required : Kind::tool_call,
                            list_tools(conversation.tools)};
  }
  switch (format.kind) {
    case Format::json_object:
      return OutputConstraint{Kind::json, ""};
    case Format::json_schema:
      return OutputConstraint{Kind::json, to_text(schema)};
    case Format::regex:
      return OutputConstraint{Kind::regex, format.regex};
    case Format::text:
      break;
  }
  return std::nullopt;
}

bool ends_with_prefix(const text::Conversation& conversation) {
  if (conversation.messages.empty()) return false;
  const auto* last = std::get_if<text::AssistantMessage>(&conversation.messages.back());
  return last != nullptr && last->prefix;
}

}  // namespace

void complete(Request& request, std::string_view format_field, std::vector<std::string> stop_sequences,
              IgnoredFields& ignored) {
  const text::Conversation& conversation = request.conversation;
  if (conversation.response_format.kind == Format::json_object) {
    if (!text::mentions(conversation, "json")) {
      rejected(
          fmt::format("{} must contain the word 'json' in some form to use '{}' of type 'json_object'.",
                      format_field == "response_format" ? "Prompt" : "Response input messages", format_field),
          "messages");
    }
    if (ends_with_prefix(conversation)) {
      rejected("response_format json_object should not be used with prefix", std::string(format_field));
    }
  }
  if (text::tools_in_force(conversation) && conversation.response_format.kind != Format::text &&
      has_strict_tool(conversation)) {
    rejected("response_format should not be used with tools", std::string(format_field));
  }
  try {
    request.inference.constraint = constraint_of(conversation);
  } catch (const text::SchemaError& error) {
    rejected(error.what(), std::string(format_field));
  }
  request.parsing = text::parser_start(conversation);
  request.parsing.stop_sequences = std::move(stop_sequences);
  request.ignored_fields = ignored.take();
}

}  // namespace thalweg::wire
