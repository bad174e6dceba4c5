#include "serve/http_session.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/read.hpp>

#include <utility>

namespace thalweg::serve {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::size_t kReadAhead = 64 * 1024;  // of what a client sends while its last request is answered
constexpr std::size_t kReadSize = 4096;
constexpr std::chrono::milliseconds kLinger{2000};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kKeepAliveComment = ": keep-alive\n\n";

HttpError timed_out() {
  return {408, "invalid_request_error", "The request took too long to arrive."};
}

}  // namespace

HttpSession::HttpSession(asio::ip::tcp::socket socket, SessionContext context,
                         std::function<void()> on_closed)
    : socket_(std::move(socket)),
      context_(context),
      on_closed_(std::move(on_closed)),
      timer_(socket_.get_executor()) {
  ++context_.service.metrics().open_connections;
}

HttpSession::~HttpSession() {
  --context_.service.metrics().open_connections;
  on_closed_();
}

void HttpSession::start() {
  asio::dispatch(socket_.get_executor(), [self = shared_from_this()] { self->await_request(); });
}

void HttpSession::drain() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->phase_ == Phase::idle) self->close();
  });
}

void HttpSession::cut() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->answer_) {
      self->answer_->cancel();
    } else {
      self->close();
    }
  });
}

void HttpSession::stop() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

// A connection without a request holds no buffers and only the idle timer.
void HttpSession::await_request() {
  phase_ = Phase::idle;
  if (context_.service.draining()) return close();
  if (buffer_.size() > 0) return read_head();
  buffer_.shrink_to_fit();
  arm(context_.options.idle_timeout, &HttpSession::close);
  socket_.async_wait(asio::ip::tcp::socket::wait_read, [self = shared_from_this()](const Error& error) {
    if (error || self->phase_ == Phase::closed) return self->close();
    self->read_head();
  });
}

void HttpSession::read_head() {
  phase_ = Phase::head;
  reader_ = std::make_shared<RequestReader>(context_.options.max_header, context_.options.max_body);
  arm(context_.options.header_timeout, &HttpSession::on_timeout);
  http::async_read_header(socket_, buffer_, reader_->parser(),
                          [self = shared_from_this(), reader = reader_](const Error& error, std::size_t) {
                            self->on_head(error);
                          });
}

void HttpSession::on_head(const Error& error) {
  if (phase_ != Phase::head) return;
  disarm();
  request_ = reader_->head();
  if (error) {
    const auto failure = parse_failure(error, context_.options.max_body);
    return failure ? refuse(*failure) : close();
  }
  keep_alive_ = reader_->keep_alive();
  if (const auto failure = reader_->check_head()) return refuse(*failure);
  const bool has_body = !reader_->parser().is_done();
  if (auto early = context_.service.check(request_)) return reply(*early, !has_body);
  if (!has_body) return handle();
  if (!reader_->expects_continue()) return read_body();
  write(std::string(kContinue), &HttpSession::read_body);
}

void HttpSession::read_body() {
  phase_ = Phase::body;
  arm(context_.options.body_timeout, &HttpSession::on_timeout);
  http::async_read(socket_, buffer_, reader_->parser(),
                   [self = shared_from_this(), reader = reader_](const Error& error, std::size_t) {
                     self->on_body(error);
                   });
}

void HttpSession::on_body(const Error& error) {
  if (phase_ != Phase::body) return;
  disarm();
  if (error) {
    const auto failure = parse_failure(error, context_.options.max_body);
    return failure ? refuse(*failure) : close();
  }
  request_.body = reader_->take_body();
  handle();
}

void HttpSession::on_timeout() {
  // The read under way ends with an error that nobody waits for any more.
  phase_ = Phase::handling;
  Error ignored;
  socket_.cancel(ignored);
  refuse(timed_out());
}

// Reading a large body as JSON and encoding its prompt would hold up every stream of this thread.
void HttpSession::handle() {
  phase_ = Phase::handling;
  framing_ = reader_->chunks_allowed() ? Framing::chunked : Framing::closing;
  asio::post(context_.workers, [self = shared_from_this()] {
    self->outcome_.emplace(self->context_.service.handle(self->request_));
    asio::post(self->socket_.get_executor(), [self] { self->on_outcome(); });
  });
}

void HttpSession::on_outcome() {
  Service::Outcome outcome = std::move(*std::exchange(outcome_, std::nullopt));
  request_.body = std::string();
  if (phase_ == Phase::closed) return;
  if (auto* whole = std::get_if<HttpReply>(&outcome)) return reply(*whole, true);
  begin_answer(std::move(std::get<std::unique_ptr<AnswerStream>>(outcome)));
}

void HttpSession::refuse(const HttpError& error) {
  reply(context_.service.refuse(request_, error), false);
}

void HttpSession::reply(const HttpReply& reply, bool may_keep_alive) {
  phase_ = Phase::answering;
  unread_ = !may_keep_alive;
  keep_alive_ = keep_alive_ && may_keep_alive && !context_.service.draining();
  write(whole_reply(reply, keep_alive_, request_.method == "HEAD"), &HttpSession::end_exchange);
}

void HttpSession::begin_answer(std::unique_ptr<AnswerStream> answer) {
  phase_ = Phase::answering;
  answer_ = std::move(answer);
  head_sent_ = false;
  keep_alive_ = keep_alive_ && framing_ == Framing::chunked;
  answer_->on_news([weak = weak_from_this(), executor = socket_.get_executor()] {
    asio::post(executor, [weak] {
      if (const auto self = weak.lock()) self->pump();
    });
  });
  watch();
  pump();
}

// Sends what has come; called whenever there is news, and after every write.
void HttpSession::pump() {
  if (!answer_) return;
  if (writing_) {
    if (answer_->overflowed()) {
      answer_->advance();
      close();
    }
    return;
  }
  const AnswerStream::State state = answer_->advance();
  if (state == AnswerStream::State::cut) return close();
  if (answer_->streams()) return pump_stream(state);
  pump_whole(state);
}

void HttpSession::pump_stream(AnswerStream::State state) {
  const bool complete = state == AnswerStream::State::complete;
  std::string bytes = head_sent_ ? std::string() : answer_head();
  bytes += chunk_of(answer_->take_output(), framing_);
  if (complete) bytes += last_chunk(framing_);
  if (complete) return write(std::move(bytes), &HttpSession::end_exchange);
  if (bytes.empty()) return arm(context_.options.keep_alive, &HttpSession::send_sign_of_life);
  write(std::move(bytes), &HttpSession::pump);
}

void HttpSession::pump_whole(AnswerStream::State state) {
  if (state != AnswerStream::State::complete) {
    return arm(context_.options.keep_alive, &HttpSession::send_sign_of_life);
  }
  HttpReply whole = answer_->reply();
  if (!head_sent_) return reply(whole, true);
  write(chunk_of(std::move(whole.body), framing_).append(last_chunk(framing_)), &HttpSession::end_exchange);
}

// Blank lines before a JSON body, comments in an event stream: neither means anything to the client.
void HttpSession::send_sign_of_life() {
  if (!answer_ || writing_) return;
  std::string bytes = head_sent_ ? std::string() : answer_head();
  bytes += chunk_of(answer_->streams() ? std::string(kKeepAliveComment) : std::string("\n"), framing_);
  write(std::move(bytes), &HttpSession::pump);
}

std::string HttpSession::answer_head() {
  head_sent_ = true;
  keep_alive_ = keep_alive_ && !context_.service.draining();
  HttpHeaders headers = answer_->headers;
  if (!answer_->streams()) return reply_head(200, "application/json", headers, framing_, 0, keep_alive_);
  for (auto& field : event_stream_headers()) headers.push_back(std::move(field));
  return reply_head(200, kEventStream, headers, framing_, 0, keep_alive_);
}

// Reads on while an answer is under way: the end of the connection is the end of the request.
void HttpSession::watch() {
  if (buffer_.size() >= kReadAhead) return;
  watching_ = true;
  socket_.async_read_some(buffer_.prepare(kReadSize),
                          [self = shared_from_this()](const Error& error, std::size_t bytes) {
                            self->watching_ = false;
                            if (self->phase_ == Phase::closed) return;
                            if (!error) self->buffer_.commit(bytes);
                            if (self->phase_ != Phase::answering) return self->await_request();
                            if (!error) return self->watch();
                            self->close();
                          });
}

void HttpSession::write(std::string bytes, void (HttpSession::*then)()) {
  disarm();
  out_ = std::move(bytes);
  written_ = 0;
  writing_ = true;
  after_write_ = then;
  write_some();
}

void HttpSession::write_some() {
  arm(context_.options.write_timeout, &HttpSession::close);
  socket_.async_write_some(asio::buffer(out_.data() + written_, out_.size() - written_),
                           [self = shared_from_this()](const Error& error, std::size_t bytes) {
                             if (self->phase_ == Phase::closed) return;
                             if (error) return self->close();
                             self->written_ += bytes;
                             if (self->written_ < self->out_.size()) return self->write_some();
                             self->disarm();
                             self->writing_ = false;
                             (self.get()->*(self->after_write_))();
                           });
}

void HttpSession::end_exchange() {
  answer_.reset();
  reader_.reset();
  out_ = std::string();
  if (!keep_alive_) return unread_ ? linger() : close();
  if (!watching_) return await_request();
  // The read that watched for the end of the connection is ended first; it goes on to the next request.
  phase_ = Phase::idle;
  Error ignored;
  socket_.cancel(ignored);
}

// Closing while bytes arrive would reset the connection, and the client might never see the reply.
void HttpSession::linger() {
  if (phase_ != Phase::lingering) {
    phase_ = Phase::lingering;
    Error ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    arm(kLinger, &HttpSession::close);
  }
  out_.resize(kReadSize);
  socket_.async_read_some(asio::buffer(out_), [self = shared_from_this()](const Error& error, std::size_t) {
    if (self->phase_ != Phase::lingering) return;
    if (error) return self->close();
    self->linger();
  });
}

void HttpSession::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  disarm();
  answer_.reset();
  Error ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

void HttpSession::arm(std::chrono::milliseconds delay, void (HttpSession::*action)()) {
  const unsigned generation = ++timer_generation_;
  timer_.expires_after(delay);
  timer_.async_wait([weak = weak_from_this(), generation, action](const Error& error) {
    const auto self = weak.lock();
    if (error || !self || self->timer_generation_ != generation) return;
    ((*self).*action)();
  });
}

void HttpSession::disarm() {
  ++timer_generation_;
  timer_.cancel();
}

}  // namespace thalweg::serve
