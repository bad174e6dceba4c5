#include "wire/chat_messages.hpp"

#include <fmt/format.h>

#include <utility>

#include "text/prompt_json.hpp"
#include "wire/images.hpp"
#include "wire/pending_calls.hpp"

namespace thalweg::wire {
namespace {

constexpr std::string_view kMissingResults =
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'";

// A list of parts of which each must be text.
std::string join_text_parts(const Json& list, const std::string& path, IgnoredFields& ignored,
                            bool assistant) {
  std::string joined;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Fields part(list[i], element_path(path, i), ignored);
    const std::string type = part.require_string("type");
    if (assistant && (type == "image_url" || type == "file")) {
      rejected("Image in assistant message is not supported", part.path());
    }
    if (type != "text") malformed(part.path("type"), "text", type);
    if (i > 0) joined += "\n\n";
    joined += part.require_string("text");
    part.finish();
  }
  return joined;
}

class Reader {
 public:
  Reader(Fields& body, const ChatMessagesOptions& options) : ignored_(body.ignored()), options_(options) {}

  std::vector<text::Message> read(const Json& list) {
    for (index_ = 0; index_ < list.size(); ++index_) {
      Fields message(list[index_], path(), ignored_);
      last_ = index_ + 1 == list.size();
      read_message(message);
      message.finish();
    }
    if (!calls_.empty()) refuse_missing_results();
    if (options_.continues &&
        (messages_.empty() || !std::holds_alternative<text::AssistantMessage>(messages_.back()))) {
      rejected("continue_final_message needs an assistant message at the end", "continue_final_message");
    }
    return std::move(messages_);
  }

 private:
  std::string path() const { return element_path("messages", index_); }
  /// The message as texts about images name it.
  std::string place() const { return fmt::format(".{}", path()); }

  void read_message(Fields& message) {
    const std::string role = message.require_string("role");
    if (role != "tool" && !calls_.empty()) refuse_missing_results();
    const bool prefix = message.boolean("prefix").value_or(false);
    if (prefix && (role != "assistant" || !last_)) {
      rejected(
          "Invalid completion message: prefix set true with message which is not final message or message "
          "role is "
          "not assistant",
          message.path("prefix"));
    }
    message.ignore("name");
    if (role == "tool") {
      read_tool(message);
      return;
    }
    calls_.clear();
    if (role == "system" || role == "developer") {
      text::SystemMessage system{read_content(message), {}};
      if (!system.content.empty()) messages_.push_back(std::move(system));
    } else if (role == "user") {
      messages_.push_back(text::UserMessage{read_content(message)});
    } else if (role == "latest_reminder") {
      messages_.push_back(text::ReminderMessage{read_text(message, false)});
    } else if (role == "assistant") {
      read_assistant(message, prefix || (options_.continues && last_));
    } else {
      malformed(message.path("role"), "system, developer, user, assistant, tool or latest_reminder", role);
    }
  }

  // A string, or a list of text parts.
  std::string read_text(Fields& message, bool assistant) {
    const Json& content = message.require("content");
    if (content.is_string()) return content.get<std::string>();
    if (!content.is_array()) malformed(message.path("content"), "a string or a list of parts", content);
    return join_text_parts(content, message.path("content"), ignored_, assistant);
  }

  text::Content read_content(Fields& message) {
    const Json& given = message.require("content");
    if (given.is_string()) return text::Content(given.get<std::string>());
    if (!given.is_array()) malformed(message.path("content"), "a string or a list of parts", given);
    text::Content content;
    for (std::size_t i = 0; i < given.size(); ++i) {
      Fields part(given[i], element_path(message.path("content"), i), ignored_);
      content.parts.push_back(read_part(part));
      part.finish();
    }
    if (content.parts.empty()) content.parts.emplace_back(std::string());
    return content;
  }

  text::Content::Part read_part(Fields& part) {
    const std::string type = part.require_string("type");
    if (type == "text") return part.require_string("text");
    if (type == "image_url") return read_image(part);
    if (type == "file") return read_file(part);
    malformed(part.path("type"), "text, image_url or file", type);
  }

  text::Image read_image(Fields& part) {
    const Json& given = part.require("image_url");
    if (given.is_string()) {
      return images_.read(given.get<std::string>(), text::ImageDetail::high, place(), part.path("image_url"));
    }
    Fields image(given, part.path("image_url"), ignored_);
    std::string url = image.require_string("url");
    const auto detail = read_detail(image);
    image.finish();
    return images_.read(std::move(url), detail, place(), image.path("url"));
  }

  // The members stand in the part itself, or as in OpenAI's form under `file`.
  text::Image read_file(Fields& part) {
    if (part.get("file") == nullptr) return read_file_members(part);
    Fields file(part.require("file"), part.path("file"), ignored_);
    text::Image image = read_file_members(file);
    file.finish();
    return image;
  }

  text::Image read_file_members(Fields& file) {
    const bool has_id = file.get("file_id") != nullptr;
    const auto data = file.string("file_data");
    const auto refuse = [&](std::string_view why) {
      rejected(fmt::format("{}: {}", place(), why), file.path());
    };
    if (has_id && data) refuse("file cannot have both file_id and file_data");
    if (has_id) refuse("file_id is not supported. Pass the image as a base64 data url instead.");
    if (!data) refuse("file must have a file_id or file_data");
    if (!is_data_url(*data)) refuse("file_data is not a valid base64 data url");
    return images_.read(*data, text::ImageDetail::high, place(), file.path("file_data"), "file");
  }

  void read_assistant(Fields& message, bool prefix) {
    if (prefix && options_.has_tools)
      rejected("Function call should not be used with prefix", message.path("prefix"));
    text::AssistantMessage assistant;
    assistant.prefix = prefix;
    const bool has_content = message.get("content") != nullptr;
    if (has_content) assistant.content = read_text(message, true);
    assistant.reasoning = message.string("reasoning_content").value_or("");
    if (const Json* calls = message.list("tool_calls"))
      read_calls(*calls, message.path("tool_calls"), assistant);
    if (!has_content && assistant.calls.empty() && assistant.reasoning.empty()) {
      rejected("Invalid assistant message: content or tool_calls must be set", message.path("content"));
    }
    messages_.push_back(std::move(assistant));
  }

  void read_calls(const Json& list, const std::string& list_path, text::AssistantMessage& assistant) {
    if (list.empty()) {
      rejected(
          fmt::format(
              "Invalid '{}': empty array. Expected an array with minimum length 1, but got an empty array "
              "instead.",
              list_path),
          list_path);
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      Fields entry(list[i], element_path(list_path, i), ignored_);
      text::Call call;
      call.id = entry.require_string("id");
      if (const std::string type = entry.require_string("type"); type != "function") {
        malformed(entry.path("type"), "function", type);
      }
      Fields function(entry.require("function"), entry.path("function"), ignored_);
      call.name = function.require_string("name");
      const Json& arguments = function.require("arguments");
      call.arguments = arguments.is_object() ? text::prompt_json(arguments)
                                             : as_string(arguments, function.path("arguments"));
      function.finish();
      entry.get("index");  // clients send back what a stream gave them
      entry.finish();
      if (!calls_.add(call.id))
        rejected(fmt::format("Duplicate tool call id: {}", call.id), entry.path("id"));
      assistant.calls.push_back(std::move(call));
    }
  }

  void read_tool(Fields& message) {
    text::ToolMessage tool{read_content(message), message.require_string("tool_call_id")};
    if (calls_.empty()) {
      rejected("Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
               path());
    }
    const auto answer = calls_.answer(tool.call_id);
    if (answer == PendingCalls::Answer::repeated) refuse_repeated(tool.call_id, message.path("tool_call_id"));
    if (answer == PendingCalls::Answer::unknown) {
      rejected(fmt::format("{}, The following tool_call_ids did not have response messages: {}",
                           kMissingResults, fmt::join(calls_.missing(), ", ")),
               message.path("tool_call_id"));
    }
    messages_.push_back(std::move(tool));
  }

  [[noreturn]] void refuse_repeated(const std::string& id, const std::string& field) const {
    rejected(fmt::format("Duplicate value for 'tool_call_id' of {} in message[{}]", id, index_), field);
  }

  [[noreturn]] void refuse_missing_results() const {
    rejected(fmt::format("{}. (insufficient tool messages following tool_calls message)", kMissingResults),
             path());
  }

  IgnoredFields& ignored_;
  ChatMessagesOptions options_;
  ImageReader images_;
  PendingCalls calls_;
  std::vector<text::Message> messages_;
  std::size_t index_ = 0;
  bool last_ = false;
};

}  // namespace

std::vector<text::Message> read_chat_messages(Fields& body, const ChatMessagesOptions& options) {
  const Json& list = body.require("messages");
  if (!list.is_array()) malformed("messages", "a list", list);
  if (list.empty()) rejected("Empty input messages", "messages");
  return Reader(body, options).read(list);
}

}  // namespace thalweg::wire
