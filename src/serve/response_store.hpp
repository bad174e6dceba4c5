// Answers of the Responses API that can be asked for again and continued by their id. In memory only: they
// end with the process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/json.hpp"

namespace thalweg::serve {

/// Bounds of what is kept; the oldest goes first.
struct ResponseLimits {
  std::size_t count = 10'000;  ///< 0: nothing is kept
  std::size_t bytes = std::size_t{64} << 20;
  std::chrono::milliseconds age = std::chrono::hours(24);
};

/// Thread-safe. `owner` names whose a response is: what others keep is unknown to them. Turns of a
/// conversation are shared by the responses that continue it, and counted once.
class ResponseStore {
 public:
  using Time = std::chrono::steady_clock::time_point;
  class Turn;
  /// The conversation up to the end of a response, a turn an element.
  using Turns = std::vector<std::shared_ptr<const Turn>>;

  explicit ResponseStore(ResponseLimits limits) : limits_(limits) {}

  bool enabled() const { return limits_.count > 0 && limits_.bytes > 0; }

  /// Keeps `response` under its `id`: the answer to `input` after `earlier`. `input` is that member of the
  /// request as JSON text, empty if there was none. One that alone is over the limit of bytes is not kept.
  void add(const std::string& owner, const Json& response, Turns earlier, std::string input, Time now);

  /// The conversation a response ends, to be given to add() with its continuation; none if it is unknown.
  std::optional<Turns> turns(const std::string& owner, const std::string& id, Time now);
  /// The items of such a conversation in one list.
  static Json items_of(const Turns& turns);

  /// The response as JSON text; none if it is unknown.
  std::optional<std::string> find(const std::string& owner, const std::string& id, Time now);
  /// False if it is unknown.
  bool erase(const std::string& owner, const std::string& id, Time now);

  std::size_t count() const;
  std::size_t bytes() const;

 private:
  struct Entry {
    std::string id;
    std::string owner;
    Time added;
    std::string response;
    Turns turns;

    /// Without the turns.
    std::size_t bytes() const;
  };
  using Entries = std::list<Entry>;

  std::optional<Entries::iterator> lookup(const std::string& owner, const std::string& id, Time now);
  void drop(Entries::iterator entry);
  void expire(Time now);

  ResponseLimits limits_;
  mutable std::mutex mutex_;
  Entries entries_;  ///< oldest first
  std::unordered_map<std::string, Entries::iterator> by_id_;
  std::size_t entry_bytes_ = 0;
  /// Outlived by turns that a request under way still holds.
  std::shared_ptr<std::atomic<std::size_t>> turn_bytes_ = std::make_shared<std::atomic<std::size_t>>(0);
};

/// The input of one request and the output of its answer as JSON text, which needs a fifth of the room.
class ResponseStore::Turn {
 public:
  Turn(std::string input, std::string output, std::shared_ptr<std::atomic<std::size_t>> total)
      : input_(std::move(input)), output_(std::move(output)), total_(std::move(total)) {
    total_->fetch_add(bytes());
  }
  ~Turn() { total_->fetch_sub(bytes()); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  const std::string& input() const { return input_; }
  const std::string& output() const { return output_; }

 private:
  std::size_t bytes() const { return sizeof(Turn) + input_.size() + output_.size(); }

  std::string input_;
  std::string output_;
  std::shared_ptr<std::atomic<std::size_t>> total_;
};

}  // namespace thalweg::serve
