#include "wire/chat_completions.hpp"

#include <fmt/format.h>

#include <array>

#include "wire/chat_messages.hpp"
#include "wire/fields.hpp"
#include "wire/settings.hpp"
#include "wire/tools.hpp"

namespace thalweg::wire {
namespace {

using text::ResponseFormat;

ThinkingWish read_thinking(Fields& body) {
  ThinkingWish wish;
  wish.on = read_thinking_type(body);
  if (const Json* effort = body.get("reasoning_effort"))
    wish.effort = read_effort(*effort, "reasoning_effort");
  if (const Json* given = body.get("chat_template_kwargs")) {
    Fields kwargs(*given, "chat_template_kwargs", body.ignored());
    const auto thinking = kwargs.boolean("thinking");
    const auto enable = kwargs.boolean("enable_thinking");
    if (!wish.on) wish.on = thinking ? thinking : enable;
    kwargs.finish();
  }
  return wish;
}

ToolList read_tools(Fields& body) {
  const Json* list = body.list("tools");
  ToolList tools;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    Fields entry((*list)[i], element_path("tools", i), body.ignored());
    const std::string type = entry.require_string("type");
    if (type != "function") malformed(entry.path("type"), "function", type);
    Fields function(entry.require("function"), entry.path("function"), body.ignored());
    text::Tool tool;
    tool.name = function.require_string("name");
    check_tool_name(tool.name, function.path("name"));
    tool.description = function.string("description");
    tool.parameters = read_parameters(function, "parameters", tool.name);
    tool.strict = function.boolean("strict");
    tools.add(std::move(tool), function.path("name"));
    function.finish();
    entry.finish();
  }
  return tools;
}

WantedTools read_tool_choice(Fields& body) {
  static constexpr std::string_view kValues = "auto, none, required or a function by name";
  const Json* given = body.get("tool_choice");
  if (given == nullptr) return {};
  if (given->is_string()) {
    if (const auto choice = named_choice(given->get_ref<const std::string&>())) return *choice;
    malformed("tool_choice", kValues, *given);
  }
  Fields choice(*given, "tool_choice", body.ignored());
  if (const std::string type = choice.require_string("type"); type != "function") {
    malformed(choice.path("type"), "function", type);
  }
  Fields function(choice.require("function"), choice.path("function"), body.ignored());
  WantedTools wanted{text::ToolChoice::required, function.require_string("name")};
  function.finish();
  choice.finish();
  return wanted;
}

ResponseFormat read_response_format(Fields& body) {
  const Json* given = body.get("response_format");
  ResponseFormat result;
  if (given == nullptr) return result;
  Fields format(*given, "response_format", body.ignored());
  const std::string type = format.require_string("type");
  if (type == "json_object") {
    result.kind = ResponseFormat::Kind::json_object;
  } else if (type == "json_schema") {
    Fields schema(format.require("json_schema"), format.path("json_schema"), body.ignored());
    result = read_json_schema(schema);
    schema.finish();
  } else if (type == "regex") {
    result.kind = ResponseFormat::Kind::regex;
    result.regex = format.require_string("regex");
  } else if (type != "text") {
    malformed(format.path("type"), "text, json_object, json_schema or regex", type);
  }
  format.finish();
  return result;
}

void read_stream(Fields& body, Request& request) {
  request.stream = body.boolean("stream").value_or(false);
  const Json* given = body.get("stream_options");
  if (given == nullptr) return;
  if (!request.stream) rejected("stream_options should be set along with stream = true", "stream_options");
  Fields options(*given, "stream_options", body.ignored());
  request.include_usage = options.boolean("include_usage").value_or(false);
  options.finish();
}

std::optional<std::uint32_t> read_limit(Fields& body, const Policy& policy) {
  const auto limit = read_max_tokens(body, "max_tokens", policy, false);
  const auto alias = read_max_tokens(body, "max_completion_tokens", policy, false);
  if (limit && alias && *limit != *alias) {
    rejected("max_tokens and max_completion_tokens are two names of one limit, but differ",
             "max_completion_tokens");
  }
  return limit ? limit : alias;
}

void read_choices(Fields& body, const Policy& policy, InferenceOptions& options) {
  const std::string message =
      policy.max_choices == 1
          ? "Invalid n value (currently only n = 1 is supported)"
          : fmt::format("Invalid n value, the valid range of n is [1, {}]", policy.max_choices);
  if (const auto n = read_integer(body, "n", 1, policy.max_choices, message)) {
    options.choices = static_cast<std::uint32_t>(*n);
  }
}

void read_logprobs(Fields& body, InferenceOptions& options) {
  options.logprobs = body.boolean("logprobs").value_or(false);
  options.top_logprobs = read_top_logprobs(body);
  if (options.top_logprobs && !options.logprobs) {
    rejected("Invalid top_logprobs and logprobs value, logprobs must be set to true if top_logprobs is used.",
             "top_logprobs");
  }
}

// Penalties have no effect, but must be sensible.
void read_penalties(Fields& body) {
  for (const auto* name : {"frequency_penalty", "presence_penalty"}) {
    const auto penalty = body.number(name);
    if (!penalty) continue;
    if (*penalty < -2 || *penalty > 2) {
      rejected(fmt::format("Invalid {0} value, the valid range of {0} is [-2, 2]", name), name);
    }
    if (*penalty != 0) body.ignored().add(name);
  }
}

// What would change the answer if it were honoured is refused rather than ignored.
void refuse_unsupported(Fields& body) {
  for (const auto* name : {"functions", "function_call", "audio"}) {
    if (body.get(name) != nullptr) rejected(fmt::format("{} is not supported", name), name);
  }
  if (const Json* bias = body.object("logit_bias"); bias != nullptr && !bias->empty()) {
    rejected("logit_bias is not supported", "logit_bias");
  }
  if (const Json* modalities = body.list("modalities")) {
    for (const Json& modality : *modalities) {
      if (modality != "text") rejected("Only text can be generated", "modalities");
    }
  }
}

void read_parallel_tool_calls(Fields& body) {
  if (!body.boolean("parallel_tool_calls").value_or(true)) body.ignored().add("parallel_tool_calls");
}

}  // namespace

Request read_chat_completions(const Json& json, const Policy& policy) {
  IgnoredFields ignored;
  Fields body(json, "", ignored);
  Request request;
  request.model = read_model(body, policy);
  refuse_unsupported(body);
  apply_thinking(read_thinking(body), policy, request.conversation);
  read_sampling(body, request);
  request.inference.max_tokens = read_limit(body, policy);
  read_choices(body, policy, request.inference);
  read_penalties(body);
  if (const auto seed = read_integer(body, "seed", 0, INT64_MAX,
                                     "Invalid seed value, the valid range of seed is [0, 2^63)")) {
    request.inference.seed = static_cast<std::uint64_t>(*seed);
  }
  auto stops = read_stop_sequences(body, "stop");
  read_logprobs(body, request.inference);
  read_stream(body, request);
  read_parallel_tool_calls(body);

  ToolList tools = read_tools(body);
  const bool continues = body.boolean("continue_final_message").value_or(false);
  request.conversation.messages =
      read_chat_messages(body, {.continues = continues, .has_tools = !tools.empty()});
  request.conversation.response_format = read_response_format(body);
  apply_tools(tools, read_tool_choice(body), request.conversation);
  body.finish();
  complete(request, "response_format", std::move(stops), ignored);
  return request;
}

}  // namespace thalweg::wire
