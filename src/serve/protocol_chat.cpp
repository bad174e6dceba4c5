// Chat Completions: chunks of deltas, one kind of text each, and the whole completion.
#include <utility>

#include "serve/protocol.hpp"

namespace thalweg::serve {
namespace {

using Kind = text::ParseEvent::Kind;

class ChatProtocol final : public Protocol {
 public:
  explicit ChatProtocol(AnswerContext context) : Protocol(std::move(context)) {}

  void fail(const HttpError& error) override { send(Json{{"error", error_object(error)}}); }

  Json whole() override {
    Json list = Json::array();
    for (std::size_t i = 0; i < choices().size(); ++i) list.push_back(whole_choice(i));
    return {{"id", head().id},
            {"object", "chat.completion"},
            {"created", head().created},
            {"model", head().model},
            {"choices", std::move(list)},
            {"usage", openai_usage()},
            {"system_fingerprint", head().system_fingerprint}};
  }

 private:
  // A prefix may have started the answer: then there is nothing left to reason.
  bool reasons() const {
    return context().thinking && context().stage != text::ParserStage::answer_continuation;
  }

  void on_begin() override {
    if (!streams()) return;
    Json delta = {{"role", "assistant"}};
    if (!context().thinking) {
      delta["content"] = "";
    } else {
      delta["content"] = reasons() ? Json() : Json("");
      delta["reasoning_content"] = reasons() ? Json("") : Json();
    }
    for (std::int32_t i = 0; i < context().choices; ++i) send(chunk(i, delta, Json(), Json()));
  }

  void on_part(const AnswerPart& part, const Json& logprobs) override {
    if (!streams()) return;
    switch (part.event.kind) {
      case Kind::reasoning:
        send(chunk(part.choice, {{"content", nullptr}, {"reasoning_content", part.event.text}},
                   listed("reasoning_content", logprobs), Json()));
        break;
      case Kind::content:
        send(chunk(part.choice, content_delta(part.event.text), listed("content", logprobs), Json()));
        break;
      case Kind::call:
        send_call(part, {{"index", part.event.call},
                         {"id", call_id(part.choice, part.event.call)},
                         {"type", "function"},
                         {"function", {{"name", part.event.text}, {"arguments", ""}}}});
        break;
      case Kind::arguments:
        send_call(part, {{"index", part.event.call}, {"function", {{"arguments", part.event.text}}}});
        break;
      case Kind::call_end:
      case Kind::stop:
        break;
    }
  }

  void on_end(std::int32_t index, text::BackendFinish) override {
    if (!streams()) return;
    Json last =
        chunk(index, content_delta(""), Json(), text::to_string(choice(index).message->finish_reason));
    // All choices together are accounted for once, with the last of them.
    if (complete()) last["usage"] = openai_usage();
    send(last);
    if (complete()) send_raw("data: [DONE]\n\n");
  }

  Json content_delta(const std::string& text) const {
    Json delta = {{"content", text}};
    if (context().thinking) delta["reasoning_content"] = nullptr;
    return delta;
  }

  void send_call(const AnswerPart& part, Json call) {
    send(chunk(part.choice, {{"tool_calls", Json::array({std::move(call)})}}, Json(), Json()));
  }

  static Json listed(const char* name, const Json& logprobs) {
    return logprobs.empty() ? Json() : Json{{name, logprobs}};
  }

  Json chunk(std::int32_t index, Json delta, Json logprobs, Json finish_reason) const {
    Json json = {{"id", head().id},
                 {"object", "chat.completion.chunk"},
                 {"created", head().created},
                 {"model", head().model},
                 {"system_fingerprint", head().system_fingerprint},
                 {"choices", Json::array({{{"index", index},
                                           {"delta", std::move(delta)},
                                           {"logprobs", std::move(logprobs)},
                                           {"finish_reason", std::move(finish_reason)}}})}};
    if (context().include_usage) json["usage"] = nullptr;
    return json;
  }

  Json whole_choice(std::size_t index) {
    Choice& of = choices()[index];
    Json message = {{"role", "assistant"}, {"content", of.message->content}};
    if (reasons()) message["reasoning_content"] = of.message->reasoning.value_or("");
    Json calls = Json::array();
    for (std::size_t i = 0; i < of.message->calls.size(); ++i) {
      const text::ParsedCall& call = of.message->calls[i];
      calls.push_back({{"index", i},
                       {"id", of.call_ids[i]},
                       {"type", "function"},
                       {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    }
    if (!calls.empty()) message["tool_calls"] = std::move(calls);
    Json logprobs;
    if (context().logprobs) {
      logprobs = {{"content", of.content_logprobs}};
      if (reasons()) logprobs["reasoning_content"] = of.reasoning_logprobs;
    }
    return {{"index", index},
            {"message", std::move(message)},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", text::to_string(of.message->finish_reason)}};
  }
};

}  // namespace

std::unique_ptr<Protocol> make_chat_protocol(AnswerContext context) {
  return std::make_unique<ChatProtocol>(std::move(context));
}

}  // namespace thalweg::serve
