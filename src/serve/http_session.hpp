// One connection: requests read one after the other, each answered before the next is looked at.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "serve/http_server.hpp"
#include "serve/http_wire.hpp"
#include "serve/request_reader.hpp"

namespace thalweg::serve {

/// What connections share. Outlives them.
struct SessionContext {
  Service& service;
  const HttpServerOptions& options;
  boost::asio::thread_pool& workers;
};

/// All work happens on the socket's strand. While an answer is under way the connection is read on, so that a
/// client that leaves is noticed at once; what it sends ahead is kept, up to a limit.
class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(boost::asio::ip::tcp::socket socket, SessionContext context, std::function<void()> on_closed);
  ~HttpSession();

  void start();
  /// From any thread: finish the answer under way, if any, and close.
  void drain();
  /// From any thread: give the answer under way up; the client is told.
  void cut();
  /// From any thread: close now.
  void stop();

 private:
  using Error = boost::system::error_code;
  enum class Phase { idle, head, body, handling, answering, lingering, closed };

  void await_request();
  void read_head();
  void on_head(const Error& error);
  void read_body();
  void on_body(const Error& error);
  void handle();
  void on_outcome();
  void reply(const HttpReply& reply, bool may_keep_alive);
  void refuse(const HttpError& error);
  void begin_answer(std::unique_ptr<AnswerStream> answer);
  void pump();
  void pump_stream(AnswerStream::State state);
  void pump_whole(AnswerStream::State state);
  void send_sign_of_life();
  std::string answer_head();
  void watch();
  void write(std::string bytes, void (HttpSession::*then)());
  void write_some();
  void end_exchange();
  void linger();
  void close();
  void arm(std::chrono::milliseconds delay, void (HttpSession::*action)());
  void disarm();
  void on_timeout();

  boost::asio::ip::tcp::socket socket_;
  SessionContext context_;
  std::function<void()> on_closed_;
  boost::beast::flat_buffer buffer_;
  boost::asio::steady_timer timer_;
  unsigned timer_generation_ = 0;
  Phase phase_ = Phase::idle;
  bool keep_alive_ = false;
  bool unread_ = false;  ///< the client may still be sending what nobody will read

  std::shared_ptr<RequestReader> reader_;  ///< shared with the read under way, which may outlast its use
  HttpRequest request_;
  std::optional<Service::Outcome> outcome_;

  std::unique_ptr<AnswerStream> answer_;
  Framing framing_ = Framing::chunked;
  bool head_sent_ = false;
  bool watching_ = false;

  std::string out_;
  std::size_t written_ = 0;
  bool writing_ = false;
  void (HttpSession::*after_write_)() = nullptr;
};

}  // namespace thalweg::serve
