#include "wire/messages_blocks.hpp"

#include <fmt/format.h>

#include <utility>

#include "text/prompt_json.hpp"

namespace thalweg::wire {

using text::AssistantMessage;
using text::Content;

namespace {

constexpr std::size_t kMostBroughtBytes = std::size_t{16} << 20;

const Json& as_blocks(const Json& content, const std::string& path) {
  if (!content.is_array()) malformed(path, "a string or a list of blocks", content);
  return content;
}

// Adds to a text, after a blank line unless it is the first.
void join(std::string& out, std::string_view text, bool first) {
  if (!first) out += "\n\n";
  out += text;
}

[[noreturn]] void refuse_empty(std::size_t index, const std::string& path) {
  rejected(fmt::format("messages.{}: all messages must have non-empty content", index), path);
}

}  // namespace

MessagesReader::MessagesReader(IgnoredFields& ignored, const std::vector<text::Tool>& tools)
    : ignored_(ignored) {
  for (const text::Tool& tool : tools) tools_.emplace(tool.name, &tool);
}

void MessagesReader::read(const Json& list, std::vector<text::Message>& out) {
  if (!list.is_array()) malformed("messages", "a list", list);
  if (list.empty()) rejected("messages: at least one message is required", "messages");
  for (index_ = 0; index_ < list.size(); ++index_) {
    Fields message(list[index_], element_path("messages", index_), ignored_);
    read_message(message);
    message.finish();
  }
  expect_no_calls(true);
  std::move(messages_.begin(), messages_.end(), std::back_inserter(out));
}

void MessagesReader::read_message(Fields& message) {
  const std::string role = message.require_string("role");
  const Json& content = message.require("content");
  const std::string path = message.path("content");
  if (role == "user") {
    read_user(content, path);
    show_found_tools();
    return;
  }
  expect_no_calls();
  if (role == "assistant") {
    read_assistant(content, path);
  } else if (role == "system") {
    read_system(content, path);
  } else {
    malformed(message.path("role"), "user, assistant or system", role);
  }
}

void MessagesReader::read_user(const Json& content, const std::string& path) {
  if (content.is_string()) {
    expect_no_calls();
    messages_.push_back(text::UserMessage{Content(content.get<std::string>())});
    return;
  }
  const Json& blocks = as_blocks(content, path);
  if (blocks.empty()) refuse_empty(index_, path);
  for (block_ = 0; block_ < blocks.size(); ++block_) {
    Fields block(blocks[block_], element_path(path, block_), ignored_);
    read_user_block(block);
    block.finish();
  }
}

void MessagesReader::read_user_block(Fields& block) {
  const std::string type = block.require_string("type");
  if (type == "tool_result") {
    read_result(block);
    return;
  }
  expect_no_calls();
  text::UserMessage message;
  if (type == "text") {
    message.content = Content(block.require_string("text"));
  } else if (type == "image") {
    message.content.parts.emplace_back(read_image(block));
  } else if (type == "document") {
    message.content = Content(describe_document(block));
  } else {
    malformed(block.path("type"), "text, image, document or tool_result", type);
  }
  messages_.push_back(std::move(message));
}

void MessagesReader::read_result(Fields& block) {
  text::ToolMessage message;
  message.call_id = block.require_string("tool_use_id");
  const auto answer = calls_.answer(message.call_id);
  if (answer == PendingCalls::Answer::repeated) {
    rejected(
        fmt::format(
            "messages.{}.content.{}: each tool_use must have a single result. Found multiple `tool_result` "
            "blocks with id: {}",
            index_, block_, message.call_id),
        block.path("tool_use_id"));
  }
  if (answer == PendingCalls::Answer::unknown) {
    rejected(fmt::format(
                 "unexpected `messages.{}.content.{}: tool_use_id` found in `tool_result` blocks: {}. Each "
                 "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
                 index_, block_, message.call_id),
             block.path("tool_use_id"));
  }
  if (block.boolean("is_error").value_or(false)) block.ignore("is_error");
  const Json* given = block.get("content");
  if (given == nullptr || given->is_string()) {
    message.content = Content(given == nullptr ? std::string() : given->get<std::string>());
  } else {
    const Json& parts = as_blocks(*given, block.path("content"));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Fields part(parts[i], element_path(block.path("content"), i), ignored_);
      read_result_part(part, message.content);
      part.finish();
    }
    if (parts.empty()) message.content = Content(std::string());
  }
  messages_.push_back(std::move(message));
}

void MessagesReader::read_result_part(Fields& part, Content& content) {
  const std::string type = part.require_string("type");
  if (type == "text") {
    content.parts.emplace_back(part.require_string("text"));
  } else if (type == "image") {
    content.parts.emplace_back(read_image(part));
  } else if (type == "document") {
    content.parts.emplace_back(describe_document(part));
  } else if (type == "tool_reference") {
    const std::string name = part.require_string("tool_name");
    const text::Tool* tool = find_tool(name);
    if (tool == nullptr) {
      rejected(fmt::format("messages.{}.content.{}: tool reference '{}' not found in available tools", index_,
                           block_, name),
               part.path("tool_name"));
    }
    bring_tool(*tool, part.path("tool_name"), found_);
    content.parts.emplace_back(name);
  } else {
    malformed(part.path("type"), "text, image, document or tool_reference", type);
  }
}

void MessagesReader::read_system(const Json& content, const std::string& path) {
  text::SystemMessage message;
  if (content.is_string()) {
    message.content = Content(content.get<std::string>());
  } else {
    const Json& blocks = as_blocks(content, path);
    for (block_ = 0; block_ < blocks.size(); ++block_) {
      Fields block(blocks[block_], element_path(path, block_), ignored_);
      const std::string type = block.require_string("type");
      if (type == "text") {
        message.content.parts.emplace_back(block.require_string("text"));
      } else if (type == "image") {
        message.content.parts.emplace_back(read_image(block));
      } else if (type == "tool_addition") {
        Fields tool(block.require("tool"), block.path("tool"), ignored_);
        if (const std::string kind = tool.require_string("type"); kind != "tool_reference") {
          malformed(tool.path("type"), "tool_reference", kind);
        }
        const std::string name = tool.require_string("name");
        const text::Tool* known = find_tool(name);
        if (known == nullptr) {
          rejected(fmt::format("messages.{}.content.{}: `tool_addition` references unknown tool '{}'", index_,
                               block_, name),
                   tool.path("name"));
        }
        bring_tool(*known, tool.path("name"), message.new_tools);
        tool.finish();
      } else {
        malformed(block.path("type"), "text, image or tool_addition", type);
      }
      block.finish();
    }
  }
  messages_.push_back(std::move(message));
}

void MessagesReader::read_assistant(const Json& content, const std::string& path) {
  calls_.clear();
  caller_ = index_;
  AssistantMessage assistant;
  if (content.is_string()) {
    assistant.content = content.get<std::string>();
  } else {
    const Json& blocks = as_blocks(content, path);
    if (blocks.empty()) refuse_empty(index_, path);
    bool has_thinking = false;
    for (block_ = 0; block_ < blocks.size(); ++block_) {
      Fields block(blocks[block_], element_path(path, block_), ignored_);
      const std::string type = block.require_string("type");
      if (type == "text") {
        if (!assistant.calls.empty()) {
          rejected(fmt::format("{}: `text` blocks must come before `tool_use` blocks", block.path()),
                   block.path());
        }
        block.get("citations");
        join(assistant.content, block.require_string("text"), assistant.content.empty());
      } else if (type == "thinking") {
        block.get("signature");
        join(assistant.reasoning, block.require_string("thinking"), !std::exchange(has_thinking, true));
      } else {
        read_assistant_block(block, assistant);
      }
      block.finish();
    }
  }
  messages_.push_back(std::move(assistant));
}

void MessagesReader::read_assistant_block(Fields& block, AssistantMessage& assistant) {
  const std::string type = block.require_string("type");
  if (type == "tool_use") {
    read_call(block, assistant);
  } else if (type == "server_tool_use" || type == "web_search_tool_result") {
    rejected("Unsupported content block: server tools are not supported", block.path("type"));
  } else if (type == "redacted_thinking") {
    rejected(fmt::format("{}: `redacted_thinking` blocks are not supported", block.path()),
             block.path("type"));
  } else {
    malformed(block.path("type"), "text, thinking or tool_use", type);
  }
}

void MessagesReader::read_call(Fields& block, AssistantMessage& assistant) {
  const Json& input = block.require("input");
  if (!input.is_object()) malformed(block.path("input"), "an object", input);
  text::Call call{block.require_string("id"), block.require_string("name"), text::prompt_json(input)};
  if (!calls_.add(call.id)) {
    rejected(fmt::format("messages.{}.content.{}: `tool_use` ids must be unique", index_, block_),
             block.path("id"));
  }
  assistant.calls.push_back(std::move(call));
}

text::Image MessagesReader::read_image(Fields& block) {
  Fields source(block.require("source"), block.path("source"), ignored_);
  const std::string place = fmt::format("messages.{}.content[{}]", index_, block_);
  const std::string type = source.require_string("type");
  std::string url;
  if (type == "base64") {
    const std::string media_type = source.require_string("media_type");
    url = fmt::format("data:{};base64,{}", media_type, source.require_string("data"));
  } else if (type == "url") {
    url = source.require_string("url");
    if (!is_web_url(url))
      rejected(fmt::format("{}: invalid url: {}", place, to_text(url)), source.path("url"));
  } else if (type == "file") {
    rejected(fmt::format("{}: file_id is not supported. Pass the image as a base64 data url instead.", place),
             source.path("type"));
  } else {
    malformed(source.path("type"), "base64 or url", type);
  }
  source.finish();
  return images_.read(std::move(url), text::ImageDetail::high, place, source.path());
}

std::string MessagesReader::describe_document(Fields& block) {
  Fields source(block.require("source"), block.path("source"), ignored_);
  block.ignore("source");
  block.get("title");
  block.get("context");
  block.get("citations");
  return fmt::format("[Unsupported document type: {}]", source.string("media_type").value_or("unknown"));
}

const text::Tool* MessagesReader::find_tool(const std::string& name) const {
  const auto found = tools_.find(name);
  return found == tools_.end() ? nullptr : found->second;
}

// Each reference copies a schema: a short request must not become a huge prompt.
void MessagesReader::bring_tool(const text::Tool& tool, const std::string& path,
                                std::vector<text::Tool>& out) {
  brought_ += to_text(tool.parameters).size() + tool.description.value_or("").size();
  if (brought_ > kMostBroughtBytes) {
    rejected(fmt::format("Tool references bring more than {} bytes of schemas", kMostBroughtBytes), path);
  }
  out.push_back(tool);
}

void MessagesReader::expect_no_calls(bool at_end) const {
  if (calls_.empty()) return;
  const std::string place = at_end || calls_.any_answered() ? fmt::format("messages.{}:", caller_)
                                                            : fmt::format("messages.{}: ", index_);
  rejected(
      fmt::format(
          "{}`tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` "
          "block must have a corresponding `tool_result` block in the next message.",
          place, fmt::join(calls_.missing(), ", ")),
      element_path("messages", caller_));
}

// Tools that results referred to arrive right after the message.
void MessagesReader::show_found_tools() {
  if (found_.empty()) return;
  messages_.push_back(text::SystemMessage{Content(std::string()), std::exchange(found_, {})});
}

}  // namespace thalweg::wire
