#include "text/chat_encoding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "text/prompt_json.hpp"
#include "text/segment_writer.hpp"
#include "text/tools_prompt.hpp"

namespace thalweg::text {
namespace {

template <class Kind>
bool is(const Message& message) {
  return std::holds_alternative<Kind>(message);
}

bool in_user_turn(const Message& message) {
  return is<UserMessage>(message) || is<ToolMessage>(message);
}

const AssistantMessage* open_prefix(const std::vector<Message>& messages) {
  const auto* last = messages.empty() ? nullptr : std::get_if<AssistantMessage>(&messages.back());
  return last != nullptr && last->prefix ? last : nullptr;
}

void append(Content& content, Content more) {
  // No parts and one empty part are the same text; only the latter gets its blank line when joined.
  if (content.parts.empty()) content.parts.emplace_back(std::string());
  if (more.parts.empty()) more.parts.emplace_back(std::string());
  std::move(more.parts.begin(), more.parts.end(), std::back_inserter(content.parts));
}

// Joins neighbouring user messages, keeps the first of neighbouring reminders, and leaves out messages that
// exist only to bring tools when none may be used.
std::vector<Message> join_neighbours(std::vector<Message> messages, bool tools) {
  std::vector<Message> joined;
  joined.reserve(messages.size() + 1);
  for (Message& message : messages) {
    const auto* system = std::get_if<SystemMessage>(&message);
    if (system != nullptr && !tools && !system->new_tools.empty() && system->content.empty()) continue;
    auto* before = joined.empty() ? nullptr : &joined.back();
    if (before != nullptr && is<UserMessage>(message) && is<UserMessage>(*before)) {
      append(std::get<UserMessage>(*before).content, std::move(std::get<UserMessage>(message).content));
    } else if (before == nullptr || !is<ReminderMessage>(message) || !is<ReminderMessage>(*before)) {
      joined.push_back(std::move(message));
    }
  }
  return joined;
}

using CallOrder = std::unordered_map<std::string, std::size_t>;

// Sorts the tool messages of [first, last) by `order`; unknown ids go last. Other messages keep their places.
void sort_results(std::vector<Message>& messages, std::size_t first, std::size_t last,
                  const CallOrder& order) {
  std::vector<std::size_t> places;
  std::vector<std::pair<std::size_t, Message>> results;
  for (std::size_t i = first; i < last; ++i) {
    if (!is<ToolMessage>(messages[i])) continue;
    const auto found = order.find(std::get<ToolMessage>(messages[i]).call_id);
    places.push_back(i);
    results.emplace_back(found == order.end() ? order.size() : found->second, std::move(messages[i]));
  }
  std::stable_sort(results.begin(), results.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < places.size(); ++i) messages[places[i]] = std::move(results[i].second);
}

// Puts the results of each user turn in the order of the calls they answer.
void sort_results(std::vector<Message>& messages) {
  CallOrder order;
  for (std::size_t i = 0; i < messages.size();) {
    if (!in_user_turn(messages[i])) {
      const auto* assistant = std::get_if<AssistantMessage>(&messages[i]);
      if (assistant != nullptr && !assistant->calls.empty()) {
        order.clear();
        for (const Call& call : assistant->calls) order.try_emplace(call.id, order.size());
      }
      ++i;
      continue;
    }
    const std::size_t first = i;
    while (i < messages.size() && in_user_turn(messages[i])) ++i;
    sort_results(messages, first, i, order);
  }
}

class Renderer {
 public:
  explicit Renderer(Conversation conversation)
      : conversation_(std::move(conversation)), tools_(tools_in_force(conversation_)) {
    auto& messages = conversation_.messages;
    messages = join_neighbours(std::move(messages), tools_);
    sort_results(messages);
    const auto format = conversation_.response_format.kind;
    const bool wants_system =
        tools_ || format == ResponseFormat::Kind::json_object || format == ResponseFormat::Kind::json_schema;
    if (wants_system && (messages.empty() || !is<SystemMessage>(messages.front()))) {
      messages.insert(messages.begin(), SystemMessage{});
    }
  }

  Prompt render() {
    out_.control(Control::bos);
    auto& messages = conversation_.messages;
    const bool continues = open_prefix(messages) != nullptr;
    if (!messages.empty()) write_start(messages.front());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      number_ = i;
      follows_user_turn_ = i > 0 && in_user_turn(messages[i - 1]);
      if (continues && i + 1 == messages.size()) {
        write_open(std::get<AssistantMessage>(messages[i]));
      } else {
        std::visit([&](auto& message) { write(message); }, messages[i]);
      }
    }
    if (!continues) write_header(conversation_.thinking);
    if (conversation_.tool_choice == ToolChoice::required && tools_) out_.markup(kCallsOpening);
    return out_.take();
  }

 private:
  void write_start(const Message& first) {
    if (conversation_.thinking || is<SystemMessage>(first)) out_.control(Control::system);
    if (conversation_.thinking) {
      out_.text(fmt::format(
          "Reasoning Effort: {} (range 1-100, the higher the value, the more thorough the reasoning)\n\n",
          conversation_.effort));
    }
  }

  void write_header(bool thinking) {
    out_.control(Control::assistant);
    out_.control(thinking ? Control::think : Control::end_think);
  }

  void write(SystemMessage& message) {
    if (number_ > 0) out_.control(Control::system);
    out_.content(std::move(message.content));
    if (number_ == 0 && tools_) {
      out_.text("\n\n");
      write_tools(out_, conversation_.tools);
    }
    if (number_ == 0) write_format();
    if (tools_ && !message.new_tools.empty()) write_new_tools(out_, message.new_tools);
  }

  void write_format() {
    const ResponseFormat& format = conversation_.response_format;
    const bool object = format.kind == ResponseFormat::Kind::json_object;
    if (!object && format.kind != ResponseFormat::Kind::json_schema) return;
    out_.text("\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n");
    out_.text(object ? R"({"type": "json_object"})" : prompt_json(format.schema));
  }

  void write_turn() {
    if (follows_user_turn_) {
      out_.text("\n\n");
    } else {
      out_.control(Control::user);
    }
  }

  void write(UserMessage& message) {
    write_turn();
    out_.content(std::move(message.content));
  }

  void write(ToolMessage& message) {
    write_turn();
    out_.text("<tool_result>");
    out_.content(std::move(message.content));
    out_.text("</tool_result>");
  }

  void write(ReminderMessage& message) {
    out_.control(Control::latest_reminder);
    out_.text(message.content);
  }

  void write(AssistantMessage& message) {
    const bool keeps_reasoning = conversation_.thinking && tools_;
    write_header(keeps_reasoning);
    if (message.replayed && message.replayed->thinking == keeps_reasoning) {
      out_.ids(std::move(message.replayed->ids));
    } else {
      if (keeps_reasoning) write_reasoning(message.reasoning);
      out_.text(message.content);
      if (!message.calls.empty()) write_calls(out_, message.calls);
    }
    out_.control(Control::eos);
  }

  void write_reasoning(const std::string& reasoning) {
    out_.text(reasoning);
    out_.control(Control::end_think);
  }

  // A message that the model is to continue.
  void write_open(const AssistantMessage& message) {
    const bool answering = !message.content.empty();
    const bool thinking = conversation_.thinking && (!answering || number_ > 0);
    write_header(thinking);
    if (thinking && answering) {
      write_reasoning(message.reasoning);
    } else if (thinking) {
      out_.text(message.reasoning);
    }
    out_.text(message.content);
  }

  Conversation conversation_;
  bool tools_;
  SegmentWriter out_;
  std::size_t number_ = 0;
  bool follows_user_turn_ = false;
};

TokenId id_of(Control control, const SpecialTokens& specials) {
  switch (control) {
    case Control::bos:
      return specials.bos;
    case Control::eos:
      return specials.eos;
    case Control::system:
      return specials.system;
    case Control::user:
      return specials.user;
    case Control::assistant:
      return specials.assistant;
    case Control::think:
      return specials.think;
    case Control::end_think:
      return specials.end_think;
    case Control::dsml:
      return specials.dsml;
    case Control::latest_reminder:
      return specials.latest_reminder;
  }
  return specials.pad;  // not reached: the enumeration has no other values
}

}  // namespace

Prompt render(Conversation conversation) {
  return Renderer(std::move(conversation)).render();
}

ParserStart parser_start(const Conversation& conversation) {
  ParserStart start;
  start.parse_tool_calls = tools_in_force(conversation);
  start.starts_in_tool_calls = start.parse_tool_calls && conversation.tool_choice == ToolChoice::required;
  start.parse_json_output = conversation.response_format.kind == ResponseFormat::Kind::json_object;
  if (!conversation.thinking) return start;
  start.stage = ParserStage::reasoning;
  if (const AssistantMessage* prefix = open_prefix(conversation.messages)) {
    if (!prefix->content.empty()) {
      start.stage = ParserStage::answer_continuation;
    } else if (!prefix->reasoning.empty()) {
      start.stage = ParserStage::reasoning_continuation;
    }
  }
  return start;
}

std::vector<TokenId> encode(const Prompt& prompt, const Tokenizer& tokenizer, const SpecialTokens& specials) {
  std::vector<TokenId> ids;
  const auto add = [&](const std::vector<TokenId>& more) { ids.insert(ids.end(), more.begin(), more.end()); };
  for (const Segment& segment : prompt.segments) {
    if (const auto* text = std::get_if<std::string>(&segment)) {
      add(tokenizer.encode_plain(*text));
    } else if (const auto* control = std::get_if<Control>(&segment)) {
      ids.push_back(id_of(*control, specials));
    } else if (const auto* replayed = std::get_if<std::vector<TokenId>>(&segment)) {
      add(*replayed);
    } else {
      ids.push_back(specials.image);
    }
  }
  return ids;
}

std::string prompt_text(const Prompt& prompt, const Tokenizer& tokenizer, const SpecialTokens& specials) {
  std::string out;
  for (const Segment& segment : prompt.segments) {
    if (const auto* text = std::get_if<std::string>(&segment)) {
      out += *text;
    } else if (const auto* control = std::get_if<Control>(&segment)) {
      out += tokenizer.token_bytes(id_of(*control, specials));
    } else if (const auto* replayed = std::get_if<std::vector<TokenId>>(&segment)) {
      out += tokenizer.decode(*replayed);
    } else {
      out += tokenizer.token_bytes(specials.image);
    }
  }
  return out;
}

}  // namespace thalweg::text
