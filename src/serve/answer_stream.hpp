// One answer on its way from the engine to a connection.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "serve/backend.hpp"
#include "serve/http_types.hpp"
#include "serve/mailbox.hpp"
#include "serve/metrics.hpp"
#include "serve/protocol.hpp"
#include "serve/request_log.hpp"

namespace thalweg::serve {

/// Called with a chat message that ended, the ids of its calls and the token ids it was generated as.
using MessageSink =
    std::function<void(const text::ParsedMessage& message, const std::vector<std::string>& call_ids,
                       std::vector<text::TokenId> ids)>;

/// Called with the whole answer once it is complete, before the client has all of it.
using ResponseSink = std::function<void(const Json& response)>;

/// Owned by a connection and used by one thread at a time. Destroying it before the answer is complete
/// cancels the request.
class AnswerStream {
 public:
  enum class State {
    growing,   ///< more will come
    complete,  ///< all of it is there
    cut,       ///< the reader was too slow: the connection is to be closed
  };

  /// Submits `request`. Throws InputError for what the engine refuses. `backend`, `metrics` and `log` must
  /// outlive it.
  /// `entry` is what the log already knows of the request.
  AnswerStream(std::unique_ptr<Protocol> protocol, engine::Request request, const Mailbox::Options& options,
               Backend& backend, Metrics& metrics, RequestLog& log, LogEntry entry);
  ~AnswerStream();
  AnswerStream(const AnswerStream&) = delete;
  AnswerStream& operator=(const AnswerStream&) = delete;

  /// True: an event stream; false: one JSON body.
  bool streams() const { return entry_.stream; }
  /// Header fields of the answer.
  HttpHeaders headers;
  /// Who remembers the message, if anybody.
  MessageSink remember;
  /// Who keeps the answer, if anybody.
  ResponseSink keep;
  ErrorShape error_shape = ErrorShape::openai;

  /// `wake` is called once, on any thread, when advance() would find something new.
  void on_news(std::function<void()> wake) { mailbox_->on_news(std::move(wake)); }
  /// The reader is too slow: advance() will say `cut`.
  bool overflowed() { return mailbox_->overflowed(); }
  /// Takes what has come since.
  State advance();
  /// Bytes of the event stream since the last call.
  std::string take_output() { return protocol_->take_output(); }
  /// The whole answer, or the error it ended with.
  HttpReply reply();
  /// Ends generation; the answer then completes as one that the service gave up.
  void cancel();

 private:
  void fail(const HttpError& error);
  void finish();
  void count(int status);
  double seconds() const;

  std::unique_ptr<Protocol> protocol_;
  std::shared_ptr<Mailbox> mailbox_;
  Backend& backend_;
  Metrics& metrics_;
  RequestLog& log_;
  LogEntry entry_;
  engine::RequestId id_ = 0;
  State state_ = State::growing;
  std::optional<HttpError> error_;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace thalweg::serve
