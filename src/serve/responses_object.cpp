#include "serve/responses_object.hpp"

namespace thalweg::serve {
namespace {

Json member(const Json& object, const char* name, Json otherwise = Json()) {
  if (!object.is_object()) return otherwise;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? otherwise : *found;
}

Json echo_function(const Json& tool) {
  return {{"type", "function"},
          {"name", member(tool, "name")},
          {"description", member(tool, "description")},
          {"parameters", member(tool, "parameters")},
          {"strict", member(tool, "strict")}};
}

Json echo_tool(const Json& tool) {
  const Json type = member(tool, "type");
  if (type == "function") return echo_function(tool);
  if (type != "namespace") return tool;
  Json inner = Json::array();
  for (const Json& function : member(tool, "tools", Json::array())) inner.push_back(echo_function(function));
  return {{"type", "namespace"},
          {"name", member(tool, "name")},
          {"description", member(tool, "description")},
          {"tools", std::move(inner)}};
}

bool is_offered(const Json& tool) {
  const Json type = member(tool, "type");
  return type == "function" || type == "namespace" || type == "custom" || type == "tool_search";
}

}  // namespace

Json echo_tools(const Json& body) {
  Json tools = Json::array();
  for (const Json& tool : member(body, "tools", Json::array())) {
    if (is_offered(tool)) tools.push_back(echo_tool(tool));
  }
  return tools;
}

Json response_object(const AnswerHead& head, const Json& body, bool stored) {
  const Json text = member(body, "text");
  const Json reasoning = member(body, "reasoning");
  Json format = member(text, "format", Json{{"type", "text"}});
  return {
      {"id", head.id},
      {"object", "response"},
      {"created_at", head.created},
      {"status", "in_progress"},
      {"background", false},
      {"completed_at", nullptr},
      {"content_filters", nullptr},
      {"error", nullptr},
      {"frequency_penalty", 0.0},
      {"incomplete_details", nullptr},
      {"instructions", member(body, "instructions")},
      {"max_output_tokens", member(body, "max_output_tokens")},
      {"max_tool_calls", nullptr},
      {"model", head.model},
      {"moderation", nullptr},
      {"output", Json::array()},
      {"parallel_tool_calls", true},
      {"presence_penalty", 0.0},
      {"previous_response_id", member(body, "previous_response_id")},
      {"prompt_cache_key", nullptr},
      {"prompt_cache_retention", nullptr},
      {"reasoning", {{"effort", member(reasoning, "effort")}, {"summary", member(reasoning, "summary")}}},
      {"safety_identifier", nullptr},
      {"service_tier", "default"},
      {"store", stored},
      {"temperature", member(body, "temperature", 1.0)},
      {"text", {{"format", std::move(format)}, {"verbosity", member(text, "verbosity")}}},
      {"tool_choice", member(body, "tool_choice", "auto")},
      {"tools", echo_tools(body)},
      {"top_logprobs", member(body, "top_logprobs", 0)},
      {"top_p", member(body, "top_p", 1.0)},
      {"truncation", "disabled"},
      {"usage", nullptr},
      {"user", member(body, "user")},
      {"metadata", Json::object()},
  };
}

}  // namespace thalweg::serve
