#include "wire/messages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "wire/fields.hpp"
#include "wire/messages_blocks.hpp"
#include "wire/settings.hpp"
#include "wire/tools.hpp"

namespace thalweg::wire {
namespace {

ThinkingWish read_thinking(Fields& body) {
  ThinkingWish wish;
  wish.on = read_thinking_type(body);
  if (const Json* given = body.get("output_config")) {
    Fields config(*given, "output_config", body.ignored());
    if (const Json* effort = config.get("effort")) wish.effort = read_effort(*effort, config.path("effort"));
    config.finish();
  }
  return wish;
}

ToolList read_tools(Fields& body) {
  const Json* list = body.list("tools");
  ToolList tools;
  bool all_deferred = list != nullptr && !list->empty();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    Fields entry((*list)[i], element_path("tools", i), body.ignored());
    if (entry.string("type").value_or("custom") != "custom") {
      rejected(fmt::format("{}: server tools are not supported", entry.path()), entry.path("type"));
    }
    text::Tool tool;
    tool.name = entry.require_string("name");
    check_tool_name(tool.name, entry.path("name"));
    tool.description = entry.string("description");
    entry.require("input_schema");
    tool.parameters = read_parameters(entry, "input_schema", tool.name);
    tool.deferred = entry.boolean("defer_loading").value_or(false);
    all_deferred = all_deferred && tool.deferred;
    tools.add(std::move(tool), entry.path("name"));
    entry.finish();
  }
  if (all_deferred)
    rejected("tools: at least one tool must have defer_loading=false. All tools cannot be deferred.",
             "tools");
  return tools;
}

WantedTools read_tool_choice(Fields& body) {
  const Json* given = body.get("tool_choice");
  if (given == nullptr) return {};
  Fields choice(*given, "tool_choice", body.ignored());
  const std::string type = choice.require_string("type");
  if (choice.boolean("disable_parallel_tool_use").value_or(false)) choice.ignore("disable_parallel_tool_use");
  WantedTools wanted;
  if (type == "tool") {
    wanted = {text::ToolChoice::required, choice.require_string("name")};
  } else if (type == "none") {
    wanted.choice = text::ToolChoice::none;
  } else if (type == "any") {
    choice.ignore("type");  // as for the public service, the model may still answer in words
  } else if (type != "auto") {
    malformed(choice.path("type"), "auto, any, none or tool", type);
  }
  choice.finish();
  return wanted;
}

void read_system(Fields& body, std::vector<text::Message>& messages) {
  const Json* given = body.get("system");
  if (given == nullptr) return;
  text::Content content;
  if (given->is_string()) {
    content = text::Content(given->get<std::string>());
  } else if (given->is_array()) {
    for (std::size_t i = 0; i < given->size(); ++i) {
      Fields block((*given)[i], element_path("system", i), body.ignored());
      if (const std::string type = block.require_string("type"); type != "text") {
        malformed(block.path("type"), "text", type);
      }
      content.parts.emplace_back(block.require_string("text"));
      block.finish();
    }
  } else {
    malformed("system", "a string or a list of text blocks", *given);
  }
  messages.push_back(text::SystemMessage{std::move(content), {}});
}

void ignore_metadata(Fields& body) {
  if (const Json* given = body.get("metadata")) {
    Fields metadata(*given, "metadata", body.ignored());
    metadata.finish();
  }
}

}  // namespace

Request read_messages(const Json& json, const Policy& policy) {
  IgnoredFields ignored;
  Fields body(json, "", ignored);
  Request request;
  request.model = read_model(body, policy, true);
  apply_thinking(read_thinking(body), policy, request.conversation);
  read_sampling(body, request);
  request.inference.max_tokens = read_max_tokens(body, "max_tokens", policy, true);
  request.stream = body.boolean("stream").value_or(false);
  auto stops = read_stop_sequences(body, "stop_sequences");
  ignore_metadata(body);

  ToolList tools = read_tools(body);
  read_system(body, request.conversation.messages);
  MessagesReader(body.ignored(), tools.tools()).read(body.require("messages"), request.conversation.messages);
  apply_tools(tools, read_tool_choice(body), request.conversation);
  body.finish();
  complete(request, "output_config.format", std::move(stops), ignored);
  return request;
}

}  // namespace thalweg::wire
