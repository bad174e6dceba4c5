// The tools of a request, and which of them it wants used.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "wire/fields.hpp"
#include "wire/request.hpp"

namespace thalweg::wire {

/// Collects tools and checks what holds for all of them.
class ToolList {
 public:
  /// Throws RejectedRequest if the name, whose field is at `name_path`, is taken.
  void add(text::Tool tool, const std::string& name_path);

  /// As add(), for a tool that arrives later and may be known already: then nothing changes.
  void add_later(text::Tool tool);

  bool empty() const { return tools_.empty(); }
  const std::vector<text::Tool>& tools() const { return tools_; }

  std::vector<text::Tool> take() { return std::move(tools_); }

 private:
  std::vector<text::Tool> tools_;
  std::unordered_set<std::string> names_;
};

/// Throws RejectedRequest unless `name` is one or more ASCII letters, digits, `_` and `-`.
void check_tool_name(const std::string& name, const std::string& path);

/// Reads the schema member `name` of a tool: absent is `{}`. Throws RejectedRequest if it is not a valid JSON
/// Schema of the type "object".
Json read_parameters(Fields& tool, std::string_view name, const std::string& tool_name);

struct WantedTools {
  text::ToolChoice choice = text::ToolChoice::automatic;
  std::optional<std::string> name;  ///< one tool, which must be called
};

/// Reads auto, none, required; none for any other text.
std::optional<WantedTools> named_choice(std::string_view text);

/// Puts the tools and the choice into the conversation; thinking must be settled. Without tools only `none`
/// has a meaning. Naming one tool keeps it alone. Strict tools that may be used are rewritten to the strict
/// subset. Throws RejectedRequest if that is not possible, if strict and loose tools are mixed, or for a
/// choice that cannot be had.
void apply_tools(ToolList& tools, const WantedTools& wanted, text::Conversation& conversation);

/// Reads {name, description, schema, strict} of a json_schema format; throws RejectedRequest for a schema
/// that is none.
text::ResponseFormat read_json_schema(Fields& format);

}  // namespace thalweg::wire
