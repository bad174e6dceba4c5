// Responses: items that open, grow and close, and the response object.
#include <ctime>
#include <utility>

#include "serve/protocol.hpp"
#include "serve/responses_object.hpp"

namespace thalweg::serve {
namespace {

using Kind = text::ParseEvent::Kind;
using Origin = wire::ToolOrigin::Kind;

class ResponsesProtocol final : public Protocol {
 public:
  explicit ResponsesProtocol(AnswerContext context)
      : Protocol(std::move(context)),
        response_(response_object(head(), this->context().body, this->context().stored)) {}

  void fail(const HttpError& error) override {
    response_["status"] = "failed";
    response_["error"] = {{"code", error.status() == 503 ? "server_is_overloaded" : "server_error"},
                          {"message", error.what()}};
    send_typed("response.failed", {{"response", response_}});
  }

  Json whole() override { return response_; }

 private:
  enum class Item { none, reasoning, message, call };

  void on_begin() override {
    send_typed("response.created", {{"response", response_}});
    send_typed("response.in_progress", {{"response", response_}});
  }

  void on_part(const AnswerPart& part, const Json& logprobs) override {
    switch (part.event.kind) {
      case Kind::reasoning:
        if (open_ != Item::reasoning) open_reasoning();
        text_ += part.event.text;
        send_delta("response.reasoning_text.delta", part.event.text, true);
        break;
      case Kind::content:
        if (open_ != Item::message) open_message();
        text_ += part.event.text;
        for (const Json& logprob : logprobs) logprobs_.push_back(logprob);
        send_text_delta(part.event.text, logprobs);
        break;
      case Kind::call:
        close("completed", "commentary");
        open_call(part);
        break;
      case Kind::arguments:
        text_ += part.event.text;
        if (kind_ == Origin::function)
          send_delta("response.function_call_arguments.delta", part.event.text, false);
        break;
      case Kind::call_end:
        close("completed", "");
        break;
      case Kind::stop:
        break;
    }
  }

  void on_end(std::int32_t index, text::BackendFinish finish) override {
    const bool cut = choice(index).message->finish_reason == text::FinishReason::length ||
                     choice(index).message->finish_reason == text::FinishReason::content_filter ||
                     finish == text::BackendFinish::insufficient_system_resource;
    close(cut ? "incomplete" : "completed", "final_answer");
    response_["usage"] = {{"input_tokens", prompt_tokens()},
                          {"input_tokens_details", {{"cached_tokens", cached_tokens()}}},
                          {"output_tokens", output_tokens()},
                          {"output_tokens_details", {{"reasoning_tokens", reasoning_tokens()}}},
                          {"total_tokens", prompt_tokens() + output_tokens()}};
    if (finish == text::BackendFinish::insufficient_system_resource) {
      fail(unavailable("The service had to give the request up."));
      return;
    }
    response_["completed_at"] = static_cast<std::int64_t>(std::time(nullptr));
    response_["status"] = cut ? "incomplete" : "completed";
    if (cut) {
      const bool length = choice(index).message->finish_reason == text::FinishReason::length;
      response_["incomplete_details"] = {{"reason", length ? "max_output_tokens" : "content_filter"}};
    }
    send_typed(cut ? "response.incomplete" : "response.completed", {{"response", response_}});
  }

  void open_reasoning() {
    close("completed", "final_answer");
    start(Item::reasoning, "rs",
          {{"status", "in_progress"},
           {"content", Json::array()},
           {"summary", Json::array()},
           {"encrypted_content", head().id + "-" + std::to_string(index())}},
          "reasoning");
    send_part("response.content_part.added", {{"type", "reasoning_text"}, {"text", ""}});
  }

  void open_message() {
    close("completed", "final_answer");
    start(Item::message, "msg",
          {{"status", "in_progress"},
           {"role", "assistant"},
           {"phase", "final_answer"},
           {"content", Json::array()}},
          "message");
    send_part("response.content_part.added", output_text("", Json::array()));
  }

  void open_call(const AnswerPart& part) {
    wire::ToolOrigin origin{Origin::function, part.event.text, ""};
    const auto known = context().tool_origins.find(part.event.text);
    if (known != context().tool_origins.end()) origin = known->second;
    kind_ = origin.kind;
    Json members = {{"status", "in_progress"}, {"call_id", call_id(0, part.event.call)}};
    if (kind_ == Origin::search) {
      members["execution"] = "client";
      members["arguments"] = Json::object();
      start(Item::call, "tsc", std::move(members), "tool_search_call");
      return;
    }
    members["name"] = origin.name;
    if (!origin.name_space.empty()) members["namespace"] = origin.name_space;
    const bool custom = kind_ == Origin::custom;
    members[custom ? "input" : "arguments"] = "";
    start(Item::call, custom ? "ctc" : "fc", std::move(members),
          custom ? "custom_tool_call" : "function_call");
  }

  void start(Item kind, const char* prefix, Json members, const char* type) {
    open_ = kind;
    text_.clear();
    logprobs_ = Json::array();
    item_ = {{"type", type}, {"id", std::string(prefix) + "_" + head().id + "_" + std::to_string(index())}};
    item_.update(members);
    send_typed("response.output_item.added", {{"item", item_}, {"output_index", index()}});
  }

  // Ends the open item. A message that calls follow was not the final answer.
  void close(const char* status, const char* phase) {
    switch (std::exchange(open_, Item::none)) {
      case Item::none:
        return;
      case Item::reasoning:
        close_reasoning();
        break;
      case Item::message:
        item_["phase"] = phase;
        close_message();
        break;
      case Item::call:
        close_call();
        break;
    }
    item_["status"] = status;
    send_typed("response.output_item.done", {{"item", item_}, {"output_index", index()}});
    response_["output"].push_back(std::move(item_));
  }

  void close_reasoning() {
    send_typed("response.reasoning_text.done",
               {{"content_index", 0}, {"item_id", item_["id"]}, {"output_index", index()}, {"text", text_}});
    const Json part = {{"type", "reasoning_text"}, {"text", text_}};
    send_part("response.content_part.done", part);
    item_["content"].push_back(part);
  }

  void close_message() {
    send_typed("response.output_text.done", {{"content_index", 0},
                                             {"item_id", item_["id"]},
                                             {"logprobs", logprobs_},
                                             {"output_index", index()},
                                             {"text", text_}});
    const Json part = output_text(text_, logprobs_);
    send_part("response.content_part.done", part);
    item_["content"].push_back(part);
  }

  void close_call() {
    if (kind_ == Origin::search) {
      item_["arguments"] = parsed_arguments();
      return;
    }
    const bool custom = kind_ == Origin::custom;
    const char* member = custom ? "input" : "arguments";
    if (custom) {
      text_ = custom_input();
      send_delta("response.custom_tool_call_input.delta", text_, false);
    }
    item_[member] = text_;
    send_typed(custom ? "response.custom_tool_call_input.done" : "response.function_call_arguments.done",
               {{member, text_}, {"item_id", item_["id"]}, {"output_index", index()}});
  }

  Json parsed_arguments() const {
    try {
      Json arguments = parse_json(text_, "arguments");
      if (arguments.is_object()) return arguments;
    } catch (const InputError&) {
      // Cut short, or not what the tool asks for: the client gets nothing to search for.
    }
    return Json::object();
  }

  // The value of the one parameter; what the model wrote as it is, if that is not the shape of its arguments.
  std::string custom_input() const {
    const Json arguments = parsed_arguments();
    const auto input = arguments.find("input");
    return input != arguments.end() && input->is_string() ? input->get<std::string>() : text_;
  }

  static Json output_text(const std::string& text, const Json& logprobs) {
    return {{"type", "output_text"}, {"annotations", Json::array()}, {"logprobs", logprobs}, {"text", text}};
  }

  void send_part(const char* type, const Json& part) {
    send_typed(type,
               {{"content_index", 0}, {"item_id", item_["id"]}, {"output_index", index()}, {"part", part}});
  }

  void send_delta(const char* type, const std::string& delta, bool in_content) {
    Json data = Json::object();
    if (in_content) data["content_index"] = 0;
    data["delta"] = delta;
    data["item_id"] = item_["id"];
    data["output_index"] = index();
    send_typed(type, std::move(data));
  }

  void send_text_delta(const std::string& delta, const Json& logprobs) {
    send_typed("response.output_text.delta", {{"content_index", 0},
                                              {"delta", delta},
                                              {"item_id", item_["id"]},
                                              {"logprobs", logprobs},
                                              {"output_index", index()}});
  }

  void send_typed(const char* type, Json members) {
    if (!streams()) return;
    Json data = {{"type", type}, {"sequence_number", sequence_number_++}};
    data.update(members);
    send(type, data);
  }

  std::size_t index() const { return response_["output"].size(); }

  Json response_;
  Json item_;  ///< the open item
  Item open_ = Item::none;
  Origin kind_ = Origin::function;  ///< of the open call
  std::string text_;                ///< text or arguments of the open item
  Json logprobs_ = Json::array();
  int sequence_number_ = 0;
};

}  // namespace

std::unique_ptr<Protocol> make_responses_protocol(AnswerContext context) {
  return std::make_unique<ResponsesProtocol>(std::move(context));
}

}  // namespace thalweg::serve
