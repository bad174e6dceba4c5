// Completions: text that continues a raw prompt.
#include <utility>

#include "serve/protocol.hpp"

namespace thalweg::serve {
namespace {

class CompletionsProtocol final : public Protocol {
 public:
  explicit CompletionsProtocol(AnswerContext context)
      : Protocol(std::move(context)), lengths_(choices().size()) {}

  void fail(const HttpError& error) override { send(Json{{"error", error_object(error)}}); }

  Json whole() override {
    Json list = Json::array();
    for (std::size_t i = 0; i < choices().size(); ++i) {
      const Choice& of = choices()[i];
      list.push_back(
          {{"index", i},
           {"text", context().echo + of.message->content},
           {"logprobs", context().logprobs ? listed(of.content_logprobs, context().echo.size()) : Json()},
           {"finish_reason", text::to_string(of.message->finish_reason)}});
    }
    Json json = envelope(std::move(list));
    json["usage"] = openai_usage();
    return json;
  }

 private:
  void on_begin() override {
    if (!streams() || context().echo.empty()) return;
    for (std::int32_t i = 0; i < context().choices; ++i) send_text(i, context().echo, Json(), Json());
  }

  void on_part(const AnswerPart& part, const Json& logprobs) override {
    if (!streams() || part.event.kind != text::ParseEvent::Kind::content) return;
    std::size_t& length = lengths_[static_cast<std::size_t>(part.choice)];
    send_text(part.choice, part.event.text,
              context().logprobs ? listed(logprobs, context().echo.size() + length) : Json(), Json());
    length += part.event.text.size();
  }

  void on_end(std::int32_t index, text::BackendFinish) override {
    if (!streams()) return;
    send_text(index, "", Json(), text::to_string(choice(index).message->finish_reason));
    if (complete()) send_raw("data: [DONE]\n\n");
  }

  void send_text(std::int32_t index, const std::string& text, Json logprobs, Json finish) {
    const bool last = !finish.is_null() && complete();
    Json json = envelope(Json::array({{{"index", index},
                                       {"text", text},
                                       {"logprobs", std::move(logprobs)},
                                       {"finish_reason", std::move(finish)}}}));
    if (last) {
      json["usage"] = openai_usage();
    } else if (context().include_usage) {
      json["usage"] = nullptr;
    }
    send(json);
  }

  Json envelope(Json list) const {
    return {{"id", head().id},
            {"object", "text_completion"},
            {"created", head().created},
            {"model", head().model},
            {"choices", std::move(list)},
            {"system_fingerprint", head().system_fingerprint}};
  }

  // The older form of log-probabilities: one list each of tokens, values, alternatives and byte offsets.
  static Json listed(const Json& entries, std::size_t offset) {
    Json json = {{"tokens", Json::array()},
                 {"token_logprobs", Json::array()},
                 {"top_logprobs", Json::array()},
                 {"text_offset", Json::array()}};
    for (const Json& entry : entries) {
      json["tokens"].push_back(entry["token"]);
      json["token_logprobs"].push_back(entry["logprob"]);
      Json top = Json::object();
      for (const Json& other : entry["top_logprobs"])
        top[other["token"].get<std::string>()] = other["logprob"];
      json["top_logprobs"].push_back(std::move(top));
      json["text_offset"].push_back(offset);
      offset += entry["bytes"].size();
    }
    return json;
  }

  std::vector<std::size_t> lengths_;  ///< bytes of each choice so far
};

}  // namespace

std::unique_ptr<Protocol> make_completions_protocol(AnswerContext context) {
  return std::make_unique<CompletionsProtocol>(std::move(context));
}

}  // namespace thalweg::serve
