// Event streams made comparable: parsed, neighbouring deltas merged, ids and times replaced.
#pragma once

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "base/json.hpp"

namespace thalweg::testing {

/// Compares without regard to the order of members.
inline nlohmann::json unordered(const Json& json) {
  return nlohmann::json::parse(to_text(json));
}

struct StreamEvent {
  std::string event;  ///< empty if the event has no name
  Json data;          ///< a string for what is not JSON
};

/// Splits an event stream; comments are skipped.
inline std::vector<StreamEvent> parse_events(const std::string& stream) {
  std::vector<StreamEvent> events;
  std::size_t begin = 0;
  for (std::size_t end; (end = stream.find("\n\n", begin)) != std::string::npos; begin = end + 2) {
    std::string block = stream.substr(begin, end - begin);
    if (block.starts_with(":")) continue;
    StreamEvent event;
    if (block.starts_with("event: ")) {
      const std::size_t line = block.find('\n');
      event.event = block.substr(7, line - 7);
      block = block.substr(line + 1);
    }
    EXPECT_TRUE(block.starts_with("data: ")) << block;
    const std::string data = block.substr(6);
    event.data = data == "[DONE]" ? Json(data) : parse_json(data, "event");
    events.push_back(std::move(event));
  }
  EXPECT_EQ(begin, stream.size()) << "unfinished event";
  return events;
}

inline void append(Json& to, const Json& more) {
  if (more.is_string()) {
    to = to.get<std::string>() + more.get<std::string>();
  } else {
    for (const Json& item : more) to.push_back(item);
  }
}

inline bool merge_chat(Json& last, const Json& next) {
  if (!last.is_object() || !last.contains("choices") || !next.is_object() || !next.contains("choices"))
    return false;
  Json& a = last["choices"][0];
  const Json& b = next["choices"][0];
  if (!a["finish_reason"].is_null() || !b["finish_reason"].is_null() || a["delta"].contains("role"))
    return false;
  if (a["delta"].contains("tool_calls") && b["delta"].contains("tool_calls")) {
    Json& call = a["delta"]["tool_calls"][0];
    const Json& more = b["delta"]["tool_calls"][0];
    if (call["index"] != more["index"] || call.contains("id") || more.contains("id")) return false;
    append(call["function"]["arguments"], more["function"]["arguments"]);
    return true;
  }
  for (const auto* kind : {"content", "reasoning_content"}) {
    if (!a["delta"].contains(kind) || !b["delta"].contains(kind)) continue;
    if (!a["delta"][kind].is_string() || !b["delta"][kind].is_string()) continue;
    append(a["delta"][kind], b["delta"][kind]);
    if (b["logprobs"].is_object()) {
      if (a["logprobs"].is_object()) {
        append(a["logprobs"][kind], b["logprobs"][kind]);
      } else {
        a["logprobs"] = b["logprobs"];
      }
    }
    return true;
  }
  return false;
}

inline bool merge(StreamEvent& last, const StreamEvent& next) {
  if (last.event != next.event) return false;
  if (last.event.empty()) return merge_chat(last.data, next.data);
  if (last.event == "content_block_delta") {
    Json& a = last.data["delta"];
    const Json& b = next.data["delta"];
    if (last.data["index"] != next.data["index"] || a["type"] != b["type"]) return false;
    for (const auto* text : {"text", "thinking", "partial_json"}) {
      if (a.contains(text)) append(a[text], b[text]);
    }
    return true;
  }
  if (!last.event.ends_with(".delta") || last.data["item_id"] != next.data["item_id"]) return false;
  append(last.data["delta"], next.data["delta"]);
  if (last.data.contains("logprobs")) append(last.data["logprobs"], next.data["logprobs"]);
  return true;
}

inline std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// Times become 0, ids of calls CALL_II, the answer's own id `id`.
inline Json normalized(const Json& json, const std::string& id) {
  static const std::regex times("\"(created|created_at|completed_at)\":[0-9]+");
  static const std::regex calls("call_([0-9]{2})_[A-Za-z0-9]{24}");
  std::string text = std::regex_replace(to_text(json), times, "\"$1\":0");
  text = std::regex_replace(text, calls, "CALL_$1");
  std::string own;
  if (json.is_object()) {
    if (json.contains("id")) own = json["id"];
    if (json.contains("response")) own = json["response"]["id"];
    if (json.contains("message")) own = json["message"]["id"];
  }
  if (!own.empty()) text = replace_all(text, own, id);
  return parse_json(text, "normalized");
}

/// A stream as protocol.json has it: [{"event", "data"}]. Checks and drops sequence numbers.
inline Json comparable(const std::string& stream, const std::string& own_id, const std::string& id) {
  const std::string text = own_id.empty() ? stream : replace_all(stream, own_id, id);
  std::vector<StreamEvent> merged;
  int sequence = 0;
  for (StreamEvent& event : parse_events(text)) {
    if (event.data.is_object() && event.data.contains("sequence_number")) {
      EXPECT_EQ(event.data["sequence_number"], sequence++);
      event.data.erase("sequence_number");
    }
    if (event.data.is_object()) event.data = normalized(event.data, id);
    if (merged.empty() || !merge(merged.back(), event)) merged.push_back(std::move(event));
  }
  Json list = Json::array();
  for (StreamEvent& event : merged) {
    list.push_back(
        {{"event", event.event.empty() ? Json() : Json(event.event)}, {"data", std::move(event.data)}});
  }
  return list;
}

}  // namespace thalweg::testing
