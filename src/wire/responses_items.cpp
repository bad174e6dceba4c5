#include "wire/responses_items.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "text/json_escape.hpp"
#include "text/prompt_json.hpp"

namespace thalweg::wire {

using text::AssistantMessage;
using text::Content;

namespace {

// Joins the texts of one assistant message; empty ones leave no trace.
void join(std::string& out, std::string_view text) {
  if (!out.empty() && !text.empty()) out += "\n\n";
  out += text;
}

// Joins pieces of reasoning; empty ones leave no trace.
void append_line(std::string& out, std::string_view text) {
  if (!out.empty() && !text.empty()) out += '\n';
  out += text;
}

}  // namespace

void ResponsesItems::read(const Json& input) {
  if (input.is_string()) {
    messages_.push_back(text::UserMessage{Content(input.get<std::string>())});
    return;
  }
  if (!input.is_array()) malformed("input", "a string or a list of input items", input);
  if (input.empty()) {
    rejected("Input items array must not be empty", "input");
  }
  for (index_ = 0; index_ < input.size(); ++index_) {
    Fields item(input[index_], element_path("input", index_), ignored_);
    read_item(item);
  }
}

void ResponsesItems::finish(std::vector<text::Message>& messages) {
  end_calls();
  end_reasoning();
  std::move(messages_.begin(), messages_.end(), std::back_inserter(messages));
}

void ResponsesItems::read_item(Fields& item) {
  const std::string type = item.string("type").value_or("message");
  item.get("id");  // items of an earlier answer come back as they were
  item.get("status");
  if (type == "message") {
    read_message(item);
  } else if (type == "reasoning") {
    read_reasoning(item);
  } else if (type == "function_call") {
    read_function_call(item);
  } else if (type == "custom_tool_call") {
    read_custom_call(item);
  } else if (type == "tool_search_call") {
    read_search_call(item);
  } else if (type == "function_call_output" || type == "custom_tool_call_output") {
    add_output(item, read_content(item.require("output"), item.path("output")));
  } else if (type == "tool_search_output") {
    read_search_output(item);
  } else {
    ignored_.add(item.path("type=" + type));
    return;
  }
  item.finish();
}

void ResponsesItems::read_message(Fields& item) {
  end_calls();
  item.get("phase");
  const std::string role = item.require_string("role");
  if (role == "assistant") {
    const std::string content = read_assistant_text(item);
    join(open_assistant().content, content);
    return;
  }
  end_reasoning();
  Content content = read_content(item.require("content"), item.path("content"));
  if (role == "user") {
    messages_.push_back(text::UserMessage{std::move(content)});
  } else if (role == "system" || role == "developer") {
    messages_.push_back(text::SystemMessage{std::move(content), {}});
  } else {
    malformed(item.path("role"), "user, assistant, system or developer", role);
  }
}

void ResponsesItems::read_reasoning(Fields& item) {
  item.get("summary");
  item.get("encrypted_content");
  const Json* content = item.list("content");
  if (content == nullptr) return;
  std::string text;
  for (std::size_t i = 0; i < content->size(); ++i) {
    Fields part((*content)[i], element_path(item.path("content"), i), ignored_);
    part.require_string("type");
    if (i > 0) text += '\n';
    text += part.require_string("text");
    part.finish();
  }
  append_line(reasoning_, text);
}

void ResponsesItems::read_function_call(Fields& item) {
  const std::string name = item.require_string("name");
  const Json& arguments = item.require("arguments");
  add_call(
      {item.require_string("call_id"), shown_name(item.string("namespace").value_or(""), name),
       arguments.is_object() ? text::prompt_json(arguments) : as_string(arguments, item.path("arguments"))},
      item.path("call_id"));
}

void ResponsesItems::read_custom_call(Fields& item) {
  const std::string input = item.require_string("input");
  add_call({item.require_string("call_id"), item.require_string("name"),
            fmt::format("{{\"input\": {}}}", text::json_quoted(input))},
           item.path("call_id"));
}

void ResponsesItems::read_search_call(Fields& item) {
  item.get("execution");
  const Json& arguments = item.require("arguments");
  if (!arguments.is_object()) malformed(item.path("arguments"), "an object", arguments);
  add_call({item.require_string("call_id"), std::string(kToolSearch), text::prompt_json(arguments)},
           item.path("call_id"));
}

void ResponsesItems::read_search_output(Fields& item) {
  item.get("execution");
  const Json& list = item.require("tools");
  if (!list.is_array()) malformed(item.path("tools"), "a list", list);
  auto found = tools_.read_found(list, item.path("tools"));
  add_output(item, Content(to_text(ResponsesTools::describe_found(list))));
  found_.push_back(std::move(found));
}

void ResponsesItems::add_call(text::Call call, const std::string& path) {
  if (calls_.empty()) {
    end_calls();
    open_assistant();
    caller_ = messages_.size() - 1;
  }
  auto& caller = std::get<AssistantMessage>(messages_[caller_]);
  take_reasoning(caller);  // between two calls of one turn
  if (!ids_.insert(call.id).second || !calls_.add(call.id))
    rejected(fmt::format("Duplicate 'call_id': {}.", call.id), path);
  caller.calls.push_back(std::move(call));
}

void ResponsesItems::add_output(Fields& item, Content content) {
  std::string id = item.require_string("call_id");
  switch (calls_.answer(id)) {
    case PendingCalls::Answer::expected:
      break;
    case PendingCalls::Answer::repeated:
      rejected(fmt::format("Duplicate tool output for call_id: {}.", id), item.path("call_id"));
    case PendingCalls::Answer::unknown:
      rejected(fmt::format("No tool call found for tool output with call_id {}.", id), item.path("call_id"));
  }
  messages_.push_back(text::ToolMessage{std::move(content), std::move(id)});
}

// What comes next is no longer about the last calls.
void ResponsesItems::end_calls() {
  if (!calls_.empty()) {
    rejected(fmt::format("No tool output found for tool call {}.", fmt::join(calls_.missing(), ", ")),
             "input");
  }
  calls_.clear();
  if (caller_ < messages_.size()) {
    if (auto* caller = std::get_if<AssistantMessage>(&messages_[caller_])) {
      std::stable_sort(caller->calls.begin(), caller->calls.end(),
                       [](const text::Call& a, const text::Call& b) { return a.id < b.id; });
    }
  }
  caller_ = messages_.size();
  for (auto& tools : std::exchange(found_, {})) {
    if (!tools.empty()) messages_.push_back(text::SystemMessage{Content(std::string()), std::move(tools)});
  }
}

// The message that what comes next belongs to. Reasoning begins a new one, unless nothing was said yet.
AssistantMessage& ResponsesItems::open_assistant() {
  auto* last = messages_.empty() ? nullptr : std::get_if<AssistantMessage>(&messages_.back());
  if (last == nullptr || (!reasoning_.empty() && !last->content.empty())) {
    messages_.push_back(AssistantMessage{});
    last = &std::get<AssistantMessage>(messages_.back());
  }
  take_reasoning(*last);
  return *last;
}

// Reasoning that no text or call followed is a message of its own.
void ResponsesItems::end_reasoning() {
  if (!reasoning_.empty()) open_assistant();
}

void ResponsesItems::take_reasoning(AssistantMessage& message) {
  append_line(message.reasoning, std::exchange(reasoning_, {}));
}

Content ResponsesItems::read_content(const Json& given, const std::string& path) {
  if (given.is_string()) return Content(given.get<std::string>());
  if (!given.is_array()) malformed(path, "a string or a list of parts", given);
  Content content;
  for (std::size_t i = 0; i < given.size(); ++i) {
    Fields part(given[i], element_path(path, i), ignored_);
    content.parts.push_back(read_part(part));
    part.finish();
  }
  if (content.parts.empty()) content.parts.emplace_back(std::string());
  return content;
}

Content::Part ResponsesItems::read_part(Fields& part) {
  const std::string type = part.require_string("type");
  if (type == "input_text" || type == "output_text") {
    part.get("annotations");
    part.get("logprobs");
    return part.require_string("text");
  }
  if (type == "input_file") {
    for (const auto* name : {"file_data", "file_id", "file_url", "filename"}) part.ignore(name);
    return std::string("[Unsupported Document]");
  }
  if (type != "input_image")
    malformed(part.path("type"), "input_text, output_text, input_image or input_file", type);
  if (part.get("file_id") != nullptr) {
    rejected(fmt::format("{}: file_id is not supported. Pass the image as a base64 data url instead.",
                         part.path()),
             part.path("file_id"));
  }
  std::string url = part.require_string("image_url");
  return images_.read(std::move(url), read_detail(part), element_path("input", index_),
                      part.path("image_url"));
}

std::string ResponsesItems::read_assistant_text(Fields& item) {
  Content content = read_content(item.require("content"), item.path("content"));
  std::string joined;
  for (const Content::Part& part : content.parts) {
    const auto* text = std::get_if<std::string>(&part);
    if (text == nullptr) {
      rejected(fmt::format("{}: Image in assistant message is unsupported", item.path()),
               item.path("content"));
    }
    if (&part != &content.parts.front()) joined += "\n\n";
    joined += *text;
  }
  return joined;
}

}  // namespace thalweg::wire
