// What a request asks for, whichever API it came through.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "text/conversation.hpp"
#include "text/parser_start.hpp"

namespace thalweg::wire {

/// What the service allows and assumes.
struct Policy {
  std::vector<std::string> model_names{"DeepSeek-V4.1-Flash", "deepseek-flash", "deepseek-v4-flash"};
  bool thinking_by_default = true;
  std::uint32_t max_tokens_bound = 393216;
  std::uint32_t max_choices = 1;  ///< upper bound of `n` (Chat Completions)
};

/// What a grammar must hold the output to.
struct OutputConstraint {
  enum class Kind {
    json,                ///< `text` is a JSON Schema, or empty for any JSON value
    regex,               ///< `text` is the expression
    tool_call,           ///< `text` is a list of tools; calls are optional
    tool_call_required,  ///< `text` is a list of tools; the output starts inside a block of calls
  };
  Kind kind;
  std::string text;
};

/// Settings of the engine for this request. Temperature and top_p are the effective ones.
struct InferenceOptions {
  std::optional<std::uint32_t> max_tokens;  ///< as asked; see resolve_max_tokens()
  double temperature = 1;
  double top_p = 1;
  bool logprobs = false;
  std::optional<std::uint32_t> top_logprobs;
  std::optional<std::uint64_t> seed;
  std::uint32_t choices = 1;
  std::optional<OutputConstraint> constraint;
};

/// Where a tool's name in the prompt comes from, to answer in the client's terms (Responses).
struct ToolOrigin {
  enum class Kind { function, custom, search };
  Kind kind = Kind::function;
  std::string name;
  std::string name_space;  ///< empty if none
};

struct Request {
  std::string model;  ///< the name the client used
  text::Conversation conversation;
  InferenceOptions inference;
  text::ParserStart parsing;
  bool stream = false;
  bool include_usage = false;                      ///< Chat Completions: `stream_options.include_usage`
  std::map<std::string, ToolOrigin> tool_origins;  ///< by name in the prompt (Responses)
  std::optional<bool> store;                       ///< Responses: whether the answer is to be kept, if said
  /// Fields that were understood or not, but have no effect; list indices are left out ("messages[].name").
  std::vector<std::string> ignored_fields;
};

}  // namespace thalweg::wire
