// How one API tells an answer: the events of a stream while it grows, and the whole of it at the end. No HTTP
// in here; docs/serving.md has the order of events.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "serve/answer.hpp"
#include "serve/errors.hpp"
#include "text/parser_start.hpp"
#include "wire/request.hpp"

namespace thalweg::serve {

/// What a protocol must know of the request it answers.
struct AnswerContext {
  AnswerHead head;
  bool stream = false;
  bool include_usage = false;
  bool thinking = false;
  text::ParserStage stage = text::ParserStage::answer;
  std::int32_t choices = 1;
  bool logprobs = false;
  const text::Tokenizer* tokenizer = nullptr;            ///< must outlive the protocol
  std::map<std::string, wire::ToolOrigin> tool_origins;  ///< Responses
  Json body;                                             ///< Responses: the request, which is echoed
  bool stored = false;                                   ///< Responses: the answer will be kept
  std::string echo;                                      ///< Completions: text put in front of the answer
};

/// The context of a request that was read from `body`.
AnswerContext answer_context(const wire::Request& request, AnswerHead head, const text::Tokenizer& tokenizer,
                             Json body);

/// A new random id of a call: "call_II_" with the index, 20 letters and digits, 4 digits.
std::string make_call_id(std::size_t index);
/// `prefix` and 24 random letters and digits.
std::string make_id(std::string_view prefix);

/// One answer (of one or more choices) in the terms of one API. Call begin() once, then add() and end() in
/// the order of each choice, then whole() or take_output(). Not for two threads at once.
class Protocol {
 public:
  virtual ~Protocol() = default;
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;

  /// The prompt was taken up by the engine.
  void begin(const PromptUsage& usage);
  void add(const AnswerPart& part);
  void end(const AnswerEnd& end);
  /// Something failed after a stream began: writes the error event of the API. Nothing follows.
  virtual void fail(const HttpError& error) = 0;

  bool begun() const { return begun_; }
  /// Every choice has ended.
  bool complete() const { return open_ == 0; }
  /// Bytes of the event stream since the last call; empty unless the request asked for a stream.
  std::string take_output() { return std::exchange(out_, {}); }
  /// The whole answer; all choices have ended.
  virtual Json whole() = 0;

  /// The message of an answer of one choice, once it has ended; else null.
  const text::ParsedMessage* message() const {
    return choices_.size() == 1 && choices_.front().message ? &*choices_.front().message : nullptr;
  }
  /// Ids of the calls of message().
  const std::vector<std::string>& message_call_ids() const { return choices_.front().call_ids; }
  std::int64_t prompt_tokens() const { return usage_.prompt_tokens; }
  std::int64_t cached_tokens() const { return usage_.cached_tokens; }
  std::int64_t output_tokens() const { return output_tokens_; }
  std::int64_t reasoning_tokens() const { return reasoning_tokens_; }

 protected:
  /// One choice so far.
  struct Choice {
    text::MessageAccumulator parts;
    std::optional<text::ParsedMessage> message;  ///< once it has ended
    std::string reasoning;
    std::vector<std::string> call_ids;
    Json content_logprobs = Json::array();
    Json reasoning_logprobs = Json::array();
  };

  explicit Protocol(AnswerContext context);

  /// Called after the part was added to its choice.
  virtual void on_begin() {}
  virtual void on_part(const AnswerPart& part, const Json& logprobs) = 0;
  virtual void on_end(std::int32_t choice, text::BackendFinish finish) = 0;

  const AnswerContext& context() const { return context_; }
  const AnswerHead& head() const { return context_.head; }
  bool streams() const { return context_.stream; }
  Choice& choice(std::int32_t index) { return choices_.at(static_cast<std::size_t>(index)); }
  std::vector<Choice>& choices() { return choices_; }
  const std::string& call_id(std::int32_t index, std::size_t call) { return choice(index).call_ids.at(call); }

  /// Append one event to the stream; without effect for whole answers.
  void send(const Json& data);
  void send(std::string_view event, const Json& data);
  void send_raw(std::string_view text);

  /// The usage object of Chat Completions and Completions.
  Json openai_usage() const;

 private:
  AnswerContext context_;
  std::vector<Choice> choices_;
  PromptUsage usage_;
  std::int64_t output_tokens_ = 0;
  std::int64_t reasoning_tokens_ = 0;
  std::size_t open_;
  bool begun_ = false;
  std::string out_;
};

/// Chat Completions, Responses, Messages and Completions.
std::unique_ptr<Protocol> make_chat_protocol(AnswerContext context);
std::unique_ptr<Protocol> make_responses_protocol(AnswerContext context);
std::unique_ptr<Protocol> make_messages_protocol(AnswerContext context);
std::unique_ptr<Protocol> make_completions_protocol(AnswerContext context);

}  // namespace thalweg::serve
