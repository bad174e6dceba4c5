// A backend that plays recordings in place of an engine: one thread, one chunk of every request a step.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "serve/backend.hpp"
#include "support/text_data.hpp"
#include "text/output_parser.hpp"

namespace thalweg::testing {

/// `backend` of a case of protocol.json: {"prompt_tokens", "prompt_cache_hit_tokens", "chunks", "finish"}. A
/// chunk is text (one token) or {"ids", "logprobs"}.
class Playback {
 public:
  Playback(Json recording, const engine::Request& request)
      : recording_(std::move(recording)), parser_(make_parser(request)), raw_(!request.parse.has_value()) {
    usage_.prompt_tokens = recording_["prompt_tokens"];
    usage_.reused_tokens = recording_["prompt_cache_hit_tokens"];
  }

  /// Plays the next chunk; false: that was the last event.
  bool step(engine::RequestId id, const engine::EventSink& sink) {
    engine::Event event;
    event.request = id;
    const Json& chunks = recording_["chunks"];
    const bool endless = recording_.value("endless", false);
    engine::OutputLogprobs logprobs;
    if (next_ < chunks.size() || endless) {
      feed(chunks[endless ? 0 : next_], event, logprobs);
      ++next_;
      ++usage_.output_tokens;
      if (parser_.stopped()) {
        event.finish = engine::Finish::stop;
        event.stop_string = event.parsed.back().text;
      }
    } else {
      end(recording_["finish"] == "length" ? engine::Finish::length : engine::Finish::stop, event);
    }
    event.usage = usage_;
    sink(event);
    return !event.finish;
  }

  void abort(engine::RequestId id, const engine::EventSink& sink) {
    engine::Event event;
    event.request = id;
    end(engine::Finish::aborted, event);
    event.usage = usage_;
    sink(event);
  }

 private:
  static text::OutputParser make_parser(const engine::Request& request) {
    const text::ParserStart start = request.parse.value_or(text::ParserStart{});
    return text::OutputParser(start);
  }

  void feed(const Json& chunk, engine::Event& event, engine::OutputLogprobs& logprobs) {
    if (chunk.is_string()) {
      if (raw_) {
        event.text = chunk;
      } else {
        parser_.feed(chunk.get_ref<const std::string&>(), event.parsed);
      }
      return;
    }
    event.token = chunk["ids"][0].get<text::TokenId>();
    // Ordinary tokens are spelled out for the parser of text, as are the few control tokens of the
    // recordings.
    parser_.feed(released_tokenizer().token_bytes(*event.token), event.parsed);
    logprobs.raw.chosen = chunk["logprobs"][0][0];
    for (const Json& other : chunk["logprobs"][0][1]) logprobs.raw.top.push_back({other[0], other[1]});
    event.logprobs = &logprobs;
  }

  // A recording ends without an end-of-sequence token: its last token is text.
  void end(engine::Finish finish, engine::Event& event) {
    if (!raw_) parser_.finish(event.parsed);
    event.finish = finish;
  }

  Json recording_;
  text::OutputParser parser_;
  bool raw_;
  std::size_t next_ = 0;
  engine::Usage usage_;
};

class RecordedBackend final : public serve::Backend {
 public:
  explicit RecordedBackend(std::chrono::microseconds pace = std::chrono::microseconds(0))
      : specials_(text::find_special_tokens(released_tokenizer())), pace_(pace) {
    thread_ = std::thread([this] { run(); });
  }
  ~RecordedBackend() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// What the next requests are answered with.
  void play(Json recording) {
    const std::lock_guard lock(mutex_);
    recording_ = std::move(recording);
  }
  /// Nothing is produced while it is held.
  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  /// Waits until no request is left.
  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return active_.empty(); });
  }
  engine::Request last_request() const {
    const std::lock_guard lock(mutex_);
    return last_request_;
  }

  engine::RequestId submit(engine::Request request, engine::EventSink sink) override {
    const std::lock_guard lock(mutex_);
    const engine::RequestId id = ++last_id_;
    ++statistics_.admitted;
    active_.emplace(id, Active{Playback(recording_, request), std::move(sink), false});
    last_request_ = std::move(request);
    changed_.notify_all();
    return id;
  }
  void cancel(engine::RequestId id) override {
    const std::lock_guard lock(mutex_);
    const auto found = active_.find(id);
    if (found != active_.end()) found->second.cancelled = true;
    changed_.notify_all();
  }
  engine::EngineStatistics statistics() const override {
    const std::lock_guard lock(mutex_);
    engine::EngineStatistics statistics = statistics_;
    (held_ ? statistics.waiting : statistics.running) = active_.size();
    return statistics;
  }
  std::int64_t context() const override { return 1048576; }
  const text::Tokenizer& tokenizer() const override { return released_tokenizer(); }
  const text::SpecialTokens& specials() const override { return specials_; }

 private:
  struct Active {
    Playback playback;
    engine::EventSink sink;
    bool cancelled;
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || has_work(); });
      if (stopping_) return;
      step();
      if (active_.empty()) idle_.notify_all();
      lock.unlock();
      std::this_thread::sleep_for(pace_);
      lock.lock();
    }
  }

  bool has_work() const {
    if (!held_) return !active_.empty();
    for (const auto& [id, active] : active_) {
      if (active.cancelled) return true;
    }
    return false;
  }

  void step() {
    for (auto it = active_.begin(); it != active_.end();) {
      auto& [id, active] = *it;
      bool goes_on = true;
      if (active.cancelled) {
        active.playback.abort(id, active.sink);
        ++statistics_.aborted;
        goes_on = false;
      } else if (!held_ && !active.playback.step(id, active.sink)) {
        ++statistics_.finished;
        goes_on = false;
      }
      it = goes_on ? std::next(it) : active_.erase(it);
    }
  }

  text::SpecialTokens specials_;
  std::chrono::microseconds pace_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable idle_;
  std::map<engine::RequestId, Active> active_;
  Json recording_ = {
      {"prompt_tokens", 5}, {"prompt_cache_hit_tokens", 0}, {"chunks", {"Hi"}}, {"finish", "stop"}};
  engine::Request last_request_;
  engine::EngineStatistics statistics_;
  engine::RequestId last_id_ = 0;
  bool held_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace thalweg::testing
