// Anthropic Messages: one content block after the other, and the whole message.
#include <utility>

#include "serve/protocol.hpp"

namespace thalweg::serve {
namespace {

using Kind = text::ParseEvent::Kind;

class MessagesProtocol final : public Protocol {
 public:
  explicit MessagesProtocol(AnswerContext context) : Protocol(std::move(context)) {}

  void fail(const HttpError& error) override {
    Json body = error_body(error, ErrorShape::anthropic, "");
    body.erase("request_id");
    send("error", body);
  }

  Json whole() override {
    const text::ParsedMessage& message = *choice(0).message;
    Json content = Json::array();
    if (message.reasoning) {
      content.push_back({{"type", "thinking"}, {"thinking", *message.reasoning}, {"signature", head().id}});
    }
    if (!message.content.empty()) content.push_back({{"type", "text"}, {"text", message.content}});
    for (std::size_t i = 0; i < message.calls.size(); ++i) {
      content.push_back({{"type", "tool_use"},
                         {"id", call_id(0, i)},
                         {"name", message.calls[i].name},
                         {"input", input_of(message.calls[i])}});
    }
    Json json = envelope(std::move(content));
    json["stop_reason"] = stop_reason(message);
    json["stop_sequence"] = message.stop_sequence ? Json(*message.stop_sequence) : Json();
    json["usage"] = usage();
    return json;
  }

 private:
  enum class Block { none, thinking, text, call };

  static Json input_of(const text::ParsedCall& call) {
    try {
      Json input = parse_json(call.arguments, "input");
      if (input.is_object()) return input;
    } catch (const InputError&) {
      // Arguments that were cut short, or that the model did not write as JSON.
    }
    return Json::object();
  }

  static const char* stop_reason(const text::ParsedMessage& message) {
    if (message.stop_sequence) return "stop_sequence";
    switch (message.finish_reason) {
      case text::FinishReason::tool_calls:
        return "tool_use";
      case text::FinishReason::length:
        return "max_tokens";
      case text::FinishReason::content_filter:
        return "refusal";
      case text::FinishReason::stop:
      case text::FinishReason::insufficient_system_resource:
        break;
    }
    return "end_turn";
  }

  Json envelope(Json content) const {
    return {{"id", head().id},
            {"type", "message"},
            {"role", "assistant"},
            {"model", head().model},
            {"content", std::move(content)},
            {"stop_reason", nullptr},
            {"stop_sequence", nullptr}};
  }

  Json usage() const {
    return {{"input_tokens", prompt_tokens() - cached_tokens()},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", cached_tokens()},
            {"output_tokens", output_tokens()},
            {"service_tier", "standard"}};
  }

  void on_begin() override {
    if (!streams()) return;
    Json message = envelope(Json::array());
    message["usage"] = usage();
    send("message_start", {{"type", "message_start"}, {"message", std::move(message)}});
  }

  void on_part(const AnswerPart& part, const Json&) override {
    if (!streams()) return;
    switch (part.event.kind) {
      case Kind::reasoning:
        open(Block::thinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
        send_delta({{"type", "thinking_delta"}, {"thinking", part.event.text}});
        break;
      case Kind::content:
        open(Block::text, {{"type", "text"}, {"text", ""}});
        send_delta({{"type", "text_delta"}, {"text", part.event.text}});
        break;
      case Kind::call:
        close();
        open(Block::call, {{"type", "tool_use"},
                           {"id", call_id(0, part.event.call)},
                           {"name", part.event.text},
                           {"input", Json::object()}});
        break;
      case Kind::arguments:
        send_delta({{"type", "input_json_delta"}, {"partial_json", part.event.text}});
        break;
      case Kind::call_end:
      case Kind::stop:
        break;
    }
  }

  void on_end(std::int32_t, text::BackendFinish finish) override {
    if (!streams()) return;
    close();
    if (finish == text::BackendFinish::insufficient_system_resource) {
      fail(unavailable("The service had to give the request up."));
      return;
    }
    const text::ParsedMessage& message = *choice(0).message;
    const Json sequence = message.stop_sequence ? Json(*message.stop_sequence) : Json();
    send("message_delta", {{"type", "message_delta"},
                           {"delta", {{"stop_reason", stop_reason(message)}, {"stop_sequence", sequence}}},
                           {"usage", usage()}});
    send("message_stop", {{"type", "message_stop"}});
  }

  void open(Block kind, Json start) {
    if (block_ == kind) return;
    close();
    block_ = kind;
    send("content_block_start",
         {{"type", "content_block_start"}, {"index", index_}, {"content_block", std::move(start)}});
    if (index_ == 0) send("ping", {{"type", "ping"}});
  }

  void close() {
    if (block_ == Block::none) return;
    if (block_ == Block::thinking) send_delta({{"type", "signature_delta"}, {"signature", head().id}});
    send("content_block_stop", {{"type", "content_block_stop"}, {"index", index_}});
    block_ = Block::none;
    ++index_;
  }

  void send_delta(Json delta) {
    send("content_block_delta",
         {{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(delta)}});
  }

  Block block_ = Block::none;
  int index_ = 0;
};

}  // namespace

std::unique_ptr<Protocol> make_messages_protocol(AnswerContext context) {
  return std::make_unique<MessagesProtocol>(std::move(context));
}

}  // namespace thalweg::serve
