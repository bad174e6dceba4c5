#include "serve/answer_stream.hpp"

#include <utility>

namespace thalweg::serve {
namespace {

constexpr int kClientLeft = 499;  // never sent; the usual status for it in logs and metrics

}  // namespace

AnswerStream::AnswerStream(std::unique_ptr<Protocol> protocol, engine::Request request,
                           const Mailbox::Options& options, Backend& backend, Metrics& metrics,
                           RequestLog& log, LogEntry entry)
    : protocol_(std::move(protocol)),
      mailbox_(std::make_shared<Mailbox>(options, metrics)),
      backend_(backend),
      metrics_(metrics),
      log_(log),
      entry_(std::move(entry)),
      started_(std::chrono::steady_clock::now()) {
  id_ = backend.submit(std::move(request),
                       [mailbox = mailbox_](const engine::Event& event) { mailbox->put(event); });
  ++metrics_.open_answers;
}

AnswerStream::~AnswerStream() {
  mailbox_->on_news(nullptr);
  if (state_ != State::complete) backend_.cancel(id_);
  if (state_ == State::growing) {
    ++metrics_.disconnects;
    count(kClientLeft);
  }
  --metrics_.open_answers;
}

AnswerStream::State AnswerStream::advance() {
  if (state_ != State::growing) return state_;
  Mailbox::News news = mailbox_->take();
  if (news.overflow) {
    ++metrics_.slow_readers;
    backend_.cancel(id_);
    count(kClientLeft);
    return state_ = State::cut;
  }
  if (news.begun) {
    entry_.prompt_tokens = news.begun->prompt_tokens;
    entry_.cached_tokens = news.begun->cached_tokens;
    entry_.first_seconds = seconds();
    protocol_->begin(*news.begun);
  }
  for (const AnswerPart& part : news.parts) protocol_->add(part);
  if (!news.error.empty()) {
    fail(news.refused ? bad_request(news.error, news.error.substr(0, news.error.find(':')))
                      : internal_error(news.error));
    return state_;
  }
  for (const AnswerEnd& end : news.ends) {
    entry_.output_tokens += end.output_tokens;
    if (news.aborted && !streams()) {
      fail(unavailable("The service had to give the request up."));
      return state_;
    }
    protocol_->end(end);
  }
  if (!protocol_->complete()) return state_;
  if (remember && !news.aborted) {
    const text::ParsedMessage* message = protocol_->message();
    if (message != nullptr) remember(*message, protocol_->message_call_ids(), std::move(news.tokens));
  }
  if (keep && !news.aborted) keep(protocol_->whole());
  finish();
  return state_;
}

void AnswerStream::fail(const HttpError& error) {
  error_ = error;
  protocol_->fail(error);
  backend_.cancel(id_);
  finish();
}

void AnswerStream::finish() {
  state_ = State::complete;
  metrics_.reasoning_tokens += static_cast<std::uint64_t>(protocol_->reasoning_tokens());
  metrics_.request_duration.observe(seconds());
  if (error_) entry_.error = error_->what();
  count(error_ ? error_->status() : 200);
}

void AnswerStream::count(int status) {
  metrics_.count_request(entry_.endpoint, status);
  entry_.status = status;
  entry_.seconds = seconds();
  log_.write(entry_);
}

double AnswerStream::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

HttpReply AnswerStream::reply() {
  HttpReply reply;
  if (error_) {
    reply.status = error_->status();
    reply.body = to_text(error_body(*error_, error_shape, entry_.id));
  } else {
    reply.body = to_text(protocol_->whole());
  }
  reply.headers = headers;
  return reply;
}

void AnswerStream::cancel() {
  backend_.cancel(id_);
}

}  // namespace thalweg::serve
