#include "wire/responses.hpp"

#include <fmt/format.h>

#include "wire/fields.hpp"
#include "wire/responses_items.hpp"
#include "wire/responses_tools.hpp"
#include "wire/settings.hpp"
#include "wire/tools.hpp"

namespace thalweg::wire {
namespace {

using text::ResponseFormat;

// What would change the answer if it were honoured is refused rather than ignored.
void refuse_unsupported(Fields& body, bool continues) {
  for (const auto* name : {"previous_response_id", "conversation", "prompt"}) {
    const bool known = continues && std::string_view(name) == "previous_response_id";
    if (body.get(name) != nullptr && !known) rejected(fmt::format("{} is not supported", name), name);
  }
  if (body.boolean("background").value_or(false)) rejected("background is not supported", "background");
  if (!body.boolean("parallel_tool_calls").value_or(true)) body.ignored().add("parallel_tool_calls");
}

ThinkingWish read_thinking(Fields& body) {
  ThinkingWish wish;
  wish.on = read_thinking_type(body);
  if (const Json* given = body.get("reasoning")) {
    Fields reasoning(*given, "reasoning", body.ignored());
    if (const Json* effort = reasoning.get("effort"))
      wish.effort = read_effort(*effort, reasoning.path("effort"));
    if (const auto summary = reasoning.string("summary")) {
      if (summary != "auto" && summary != "concise" && summary != "detailed") {
        malformed(reasoning.path("summary"), "auto, concise or detailed", *summary);
      }
      body.ignored().add(reasoning.path("summary"));
    }
    reasoning.finish();
  }
  return wish;
}

ResponseFormat read_format(Fields& body) {
  ResponseFormat result;
  const Json* given = body.get("text");
  if (given == nullptr) return result;
  Fields text(*given, "text", body.ignored());
  if (const auto verbosity = text.string("verbosity")) {
    if (verbosity != "low" && verbosity != "medium" && verbosity != "high") {
      malformed(text.path("verbosity"), "low, medium or high", *verbosity);
    }
    body.ignored().add(text.path("verbosity"));
  }
  if (const Json* member = text.get("format")) {
    Fields format(*member, text.path("format"), body.ignored());
    const std::string type = format.require_string("type");
    if (type == "json_object") {
      result.kind = ResponseFormat::Kind::json_object;
    } else if (type == "json_schema") {
      result = read_json_schema(format);
    } else if (type != "text") {
      malformed(format.path("type"), "text, json_object or json_schema", type);
    }
    format.finish();
  }
  text.finish();
  return result;
}

WantedTools read_tool_choice(Fields& body) {
  const Json* given = body.get("tool_choice");
  if (given == nullptr) return {};
  if (given->is_string()) {
    if (const auto choice = named_choice(given->get_ref<const std::string&>())) return *choice;
    malformed("tool_choice", "auto, none, required or a tool by name", *given);
  }
  Fields choice(*given, "tool_choice", body.ignored());
  const std::string type = choice.require_string("type");
  WantedTools wanted;
  if (type == "function" || type == "custom") {
    const std::string name = choice.require_string("name");
    wanted = {text::ToolChoice::required, shown_name(choice.string("namespace").value_or(""), name)};
  } else if (type.rfind("web_search", 0) == 0) {
    body.ignored().add("tool_choice");
  } else {
    malformed(choice.path("type"), "function, custom or web_search", type);
  }
  choice.finish();
  return wanted;
}

void read_input(Fields& body, const Json* earlier, ResponsesTools& tools,
                std::vector<text::Message>& messages) {
  const std::string instructions = body.string("instructions").value_or("");
  if (!instructions.empty()) messages.push_back(text::SystemMessage{text::Content(instructions), {}});
  const Json* input = body.get("input");
  if (input == nullptr && earlier == nullptr && instructions.empty())
    rejected("Either input or instructions must be provided", "input");
  ResponsesItems items(body.ignored(), tools);
  if (earlier != nullptr && !earlier->empty()) items.read(*earlier);
  if (input != nullptr) items.read(*input);
  items.finish(messages);
}

}  // namespace

Request read_responses(const Json& json, const Policy& policy, const Json* earlier) {
  IgnoredFields ignored;
  Fields body(json, "", ignored);
  Request request;
  request.model = read_model(body, policy);
  refuse_unsupported(body, earlier != nullptr);
  request.store = body.boolean("store");
  apply_thinking(read_thinking(body), policy, request.conversation);
  read_sampling(body, request);
  request.inference.max_tokens = read_max_tokens(body, "max_output_tokens", policy, false);
  request.inference.top_logprobs = read_top_logprobs(body);
  request.inference.logprobs = request.inference.top_logprobs.has_value();
  request.stream = body.boolean("stream").value_or(false);

  ResponsesTools tools(ignored);
  if (const Json* list = body.list("tools")) tools.read(*list, "tools");
  read_input(body, earlier, tools, request.conversation.messages);
  request.conversation.response_format = read_format(body);
  apply_tools(tools.list(), read_tool_choice(body), request.conversation);
  request.tool_origins = tools.take_origins();
  body.finish();
  complete(request, "text.format", {}, ignored);
  return request;
}

}  // namespace thalweg::wire
