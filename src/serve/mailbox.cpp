#include "serve/mailbox.hpp"

#include <iterator>
#include <utility>

#include "serve/metrics.hpp"

namespace thalweg::serve {
namespace {

using Clock = std::chrono::steady_clock;

text::BackendFinish backend_finish(engine::Finish finish) {
  switch (finish) {
    case engine::Finish::stop:
      return text::BackendFinish::stop;
    case engine::Finish::length:
      return text::BackendFinish::length;
    case engine::Finish::aborted:
    case engine::Finish::deadline:
    case engine::Finish::refused:
    case engine::Finish::failed:
      break;
  }
  return text::BackendFinish::insufficient_system_resource;
}

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Mailbox::Mailbox(const Options& options, Metrics& metrics)
    : options_(options),
      metrics_(metrics),
      sorters_(static_cast<std::size_t>(options.choices), LogprobSorter(options.specials, options.tools)),
      submitted_(Clock::now()),
      last_token_(static_cast<std::size_t>(options.choices)) {}

void Mailbox::put(const engine::Event& event) {
  observe_times(event);
  const std::lock_guard lock(mutex_);
  const bool overflowed = news_.overflow;
  put_locked(event);
  const bool tell = !awake_ || news_.overflow != overflowed;
  awake_ = true;
  // Under the lock: once on_news(nullptr) has returned, nobody is woken any more.
  if (tell && wake_) wake_();
}

void Mailbox::put_locked(const engine::Event& event) {
  if (!begun_) {
    begun_ = true;
    news_.begun = PromptUsage{event.usage.prompt_tokens, event.usage.reused_tokens};
  }
  if (options_.remember && event.choice == 0 && event.token) tokens_.push_back(*event.token);
  std::vector<AnswerPart> parts;
  for (const text::ParseEvent& piece : event.parsed) parts.push_back({event.choice, piece, {}});
  if (!event.text.empty()) {
    parts.push_back({event.choice, {text::ParseEvent::Kind::content, 0, event.text}, {}});
  }
  if (!options_.specials && !event.stop_string.empty()) {
    parts.push_back({event.choice, {text::ParseEvent::Kind::stop, 0, event.stop_string}, {}});
  }
  if (options_.logprobs) sorters_[static_cast<std::size_t>(event.choice)].sort(event, parts);
  for (AnswerPart& part : parts) join(std::move(part));
  if (!event.finish) return;
  if (event.choice == 0 && options_.remember) {
    if (*event.finish == engine::Finish::stop && event.stop_string.empty() && event.token) tokens_.pop_back();
    news_.tokens = std::move(tokens_);
  }
  news_.ends.push_back({event.choice, backend_finish(*event.finish), event.usage.output_tokens});
  news_.refused = *event.finish == engine::Finish::refused;
  if (news_.refused || *event.finish == engine::Finish::failed)
    news_.error = event.error.empty() ? "the engine failed" : event.error;
  news_.aborted =
      news_.aborted || *event.finish == engine::Finish::aborted || *event.finish == engine::Finish::deadline;
}

void Mailbox::join(AnswerPart part) {
  if (news_.overflow) return;
  waiting_bytes_ += part.event.text.size() + part.logprobs.size() * sizeof(TokenLogprob);
  for (const TokenLogprob& logprob : part.logprobs)
    waiting_bytes_ += logprob.top.size() * sizeof(RankedToken);
  if (waiting_bytes_ > options_.limit) {
    news_.overflow = true;
    news_.parts.clear();
    return;
  }
  for (auto last = news_.parts.rbegin(); last != news_.parts.rend(); ++last) {
    if (last->choice != part.choice) continue;
    using Kind = text::ParseEvent::Kind;
    const bool is_text = part.event.kind == Kind::content || part.event.kind == Kind::reasoning ||
                         part.event.kind == Kind::arguments;
    if (!is_text || last->event.kind != part.event.kind || last->event.call != part.event.call) break;
    last->event.text += part.event.text;
    std::move(part.logprobs.begin(), part.logprobs.end(), std::back_inserter(last->logprobs));
    return;
  }
  news_.parts.push_back(std::move(part));
}

void Mailbox::observe_times(const engine::Event& event) {
  if (!event.token) return;
  const auto now = Clock::now();
  Clock::time_point& last = last_token_[static_cast<std::size_t>(event.choice)];
  if (last == Clock::time_point()) {
    if (event.choice == 0) metrics_.time_to_first_token.observe(seconds_between(submitted_, now));
  } else {
    metrics_.time_between_tokens.observe(seconds_between(last, now));
  }
  last = now;
}

Mailbox::News Mailbox::take() {
  const std::lock_guard lock(mutex_);
  awake_ = false;
  waiting_bytes_ = 0;
  return std::exchange(news_, {});
}

bool Mailbox::overflowed() {
  const std::lock_guard lock(mutex_);
  return news_.overflow;
}

void Mailbox::on_news(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

}  // namespace thalweg::serve
