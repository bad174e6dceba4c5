// Where the events of one request wait for the connection that tells them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.hpp"
#include "serve/answer.hpp"
#include "serve/logprobs.hpp"

namespace thalweg::serve {

class Metrics;

/// The engine puts, the connection takes; neither waits for the other. Pieces of one kind are joined while
/// they wait, so a slow reader costs the text it has not read and no more; beyond `limit` bytes of it the
/// mailbox overflows, and the request is to be cancelled.
class Mailbox {
 public:
  struct Options {
    std::int32_t choices = 1;
    bool logprobs = false;
    bool tools = false;                             ///< a block of calls is markup
    const text::SpecialTokens* specials = nullptr;  ///< null: raw text
    std::size_t limit = std::size_t{4} << 20;
    bool remember = false;  ///< keep the ids of the answer, see News::tokens
  };

  struct News {
    std::optional<PromptUsage> begun;  ///< with the first news
    std::vector<AnswerPart> parts;
    std::vector<AnswerEnd> ends;
    std::string error;     ///< the engine failed
    bool refused = false;  ///< with `error`: the request was wrong, which was seen late
    bool aborted = false;  ///< an answer was cut by cancel() or its deadline
    bool overflow = false;
    /// Ids of the first choice, end of sequence left out; with its end, if asked for.
    std::vector<text::TokenId> tokens;
  };

  /// `metrics` must outlive it.
  Mailbox(const Options& options, Metrics& metrics);

  /// Engine's thread.
  void put(const engine::Event& event);
  /// Everything since the last call.
  News take();
  bool overflowed();
  /// `wake` is called, on the engine's thread, when news come in after take(), and when the mailbox
  /// overflows. It must neither block nor call the mailbox.
  void on_news(std::function<void()> wake);

 private:
  void join(AnswerPart part);
  void observe_times(const engine::Event& event);
  void put_locked(const engine::Event& event);

  Options options_;
  Metrics& metrics_;
  std::mutex mutex_;
  News news_;
  bool awake_ = true;  ///< the connection knows that there is something to take
  std::function<void()> wake_;
  std::size_t waiting_bytes_ = 0;

  // The engine's thread only.
  std::vector<LogprobSorter> sorters_;
  bool begun_ = false;
  std::vector<text::TokenId> tokens_;
  std::chrono::steady_clock::time_point submitted_;
  std::vector<std::chrono::steady_clock::time_point> last_token_;
};

}  // namespace thalweg::serve
