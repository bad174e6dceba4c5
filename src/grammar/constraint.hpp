// What an output can be held to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace thalweg::grammar {

/// A tool whose calls are held to its name and to well-formed arguments, and to a schema if there is one.
struct ToolForm {
  std::string name;
  /// JSON Schema of the arguments: an object with `additionalProperties: false`. Absent: any arguments.
  std::optional<std::string> parameters = {};

  bool operator==(const ToolForm&) const = default;
};

/// Plain data; `to_grammar` (rules.hpp) says what is refused.
struct Constraint {
  enum class Kind {
    json_schema,  ///< JSON valid for the schema `text`
    json_object,  ///< one JSON object, blanks between its parts
    regex,        ///< `text` matches the whole output
    ebnf,         ///< `text` is a grammar whose start is the rule `root`
    choice,       ///< one of `choices`, exactly
    tool_calls,   ///< a block of calls of `tools` in the model's markup, or free text without one
  };
  Kind kind = Kind::json_object;
  std::string text = {};
  std::vector<std::string> choices = {};
  std::vector<ToolForm> tools = {};
  bool calls_required = false;  ///< tool_calls: the output starts inside the block, which the prompt opened
  /// Everything is allowed up to and with this token (the end of the reasoning); the constraint holds for
  /// what follows. Not for tool_calls, which begin where the model opens a block.
  std::optional<std::int32_t> after_token = {};

  /// What errors call it, in the words of whoever asked; empty: json_schema, regex, grammar, choice,
  /// json_object, tools.
  std::string field = {};

  bool operator==(const Constraint&) const = default;
};

}  // namespace thalweg::grammar
