#include "text/tools_prompt.hpp"

#include <optional>

#include "base/error.hpp"
#include "text/json_escape.hpp"
#include "text/prompt_json.hpp"

namespace thalweg::text {
namespace {

// The wording is the one the model was trained on.
constexpr std::string_view kBeforeSchemas = R"(## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜ calls>" block like the following:

<｜DSML｜ calls>
<｜DSML｜ invoke name="$TOOL_NAME">
<｜DSML｜ parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜ parameter>
...
</｜DSML｜ invoke>
<｜DSML｜ invoke name="$TOOL_NAME2">
...
</｜DSML｜ invoke>
</｜DSML｜ calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

)";

constexpr std::string_view kAfterSchemas =
    "\n\nYou MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.\n";

std::string schema_line(const Tool& tool) {
  std::string line = R"({"name": )";
  line += json_quoted(tool.name);
  line += R"(, "description": )";
  line += json_quoted(tool.description.value_or(""));
  line += R"(, "parameters": )";
  append_prompt_json(line, tool.parameters);
  line += '}';
  return line;
}

std::optional<Json> object_in(const std::string& arguments) {
  try {
    Json value = parse_json(arguments, "arguments");
    if (value.is_object()) return value;
  } catch (const InputError&) {
    // Whatever the model wrote must be shown to it again; it becomes one string parameter.
  }
  return std::nullopt;
}

void write_parameter(SegmentWriter& out, std::string_view key, std::string_view value, bool is_string) {
  out.markup("<｜DSML｜ parameter name=\"");
  out.text(key);
  out.text(is_string ? "\" string=\"true\">" : "\" string=\"false\">");
  out.text(value);
  out.markup("</｜DSML｜ parameter>\n");
}

void write_call(SegmentWriter& out, const Call& call) {
  out.markup("<｜DSML｜ invoke name=\"");
  out.text(call.name);
  out.text("\">\n");
  if (const auto object = object_in(call.arguments)) {
    if (object->empty()) out.text("\n");
    for (const auto& [key, value] : object->items()) {
      const bool is_string = value.is_string();
      write_parameter(out, key, is_string ? value.get_ref<const std::string&>() : prompt_json(value),
                      is_string);
    }
  } else {
    write_parameter(out, "arguments", call.arguments, true);
  }
  out.markup("</｜DSML｜ invoke>\n");
}

}  // namespace

void write_tools(SegmentWriter& out, const std::vector<Tool>& tools) {
  out.markup(kBeforeSchemas);
  std::string_view separator;
  for (const Tool& tool : tools) {
    if (tool.deferred) continue;
    out.text(separator);
    out.text(schema_line(tool));
    separator = "\n";
  }
  out.text(kAfterSchemas);
}

void write_new_tools(SegmentWriter& out, const std::vector<Tool>& tools) {
  out.text("\n\n### Updated Tool Schemas\n");
  for (const Tool& tool : tools) {
    out.text("\n");
    out.text(schema_line(tool));
  }
}

void write_calls(SegmentWriter& out, const std::vector<Call>& calls) {
  out.markup(kCallsOpening);
  for (const Call& call : calls) write_call(out, call);
  out.markup("</｜DSML｜ calls>");
}

}  // namespace thalweg::text
