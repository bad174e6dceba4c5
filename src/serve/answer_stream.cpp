#include "serve/answer_stream.hpp"

#include <utility>

namespace thalweg::serve {
namespace {

constexpr int kClientLeft = 499;  // never sent; the usual status for it in logs and metrics

}  // namespace

AnswerStream::AnswerStream(std::unique_ptr<Protocol> protocol, bool streams, engine::Request request,
                           const Mailbox::Options& options, Backend& backend, Metrics& metrics,
                           std::string endpoint)
    : protocol_(std::move(protocol)),
      mailbox_(std::make_shared<Mailbox>(options, metrics)),
      backend_(backend),
      metrics_(metrics),
      endpoint_(std::move(endpoint)),
      streams_(streams),
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
    metrics_.count_request(endpoint_, kClientLeft);
  }
  --metrics_.open_answers;
}

AnswerStream::State AnswerStream::advance() {
  if (state_ != State::growing) return state_;
  Mailbox::News news = mailbox_->take();
  if (news.overflow) {
    ++metrics_.slow_readers;
    backend_.cancel(id_);
    metrics_.count_request(endpoint_, kClientLeft);
    return state_ = State::cut;
  }
  if (news.begun) protocol_->begin(*news.begun);
  for (const AnswerPart& part : news.parts) protocol_->add(part);
  if (!news.error.empty()) {
    fail(internal_error(news.error));
    return state_;
  }
  for (const AnswerEnd& end : news.ends) {
    if (news.aborted && !streams_) {
      fail(unavailable("The service had to give the request up."));
      return state_;
    }
    protocol_->end(end);
  }
  if (protocol_->complete()) {
    if (remember && !news.aborted) {
      const text::ParsedMessage* message = protocol_->message();
      if (message != nullptr) remember(*message, protocol_->message_call_ids(), std::move(news.tokens));
    }
    finish();
  }
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
  metrics_.request_duration.observe(
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count());
  metrics_.count_request(endpoint_, error_ ? error_->status() : 200);
}

HttpReply AnswerStream::reply() {
  HttpReply reply;
  if (error_) {
    reply.status = error_->status();
    reply.body = to_text(error_body(*error_, error_shape, request_id));
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
