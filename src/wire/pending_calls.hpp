// The calls of the last assistant message that still wait for their results.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/conversation.hpp"

namespace thalweg::wire {

class PendingCalls {
 public:
  enum class Answer { expected, repeated, unknown };

  bool empty() const { return open_ == 0; }
  bool any_answered() const { return open_ < order_.size(); }

  /// Forgets earlier calls, answered or not.
  void clear() {
    order_.clear();
    answered_.clear();
    open_ = 0;
  }

  /// False if a call of this id is there already.
  bool add(const std::string& id) {
    if (!answered_.try_emplace(id, false).second) return false;
    order_.push_back(id);
    ++open_;
    return true;
  }

  /// A result for `id` has come.
  Answer answer(const std::string& id) {
    const auto found = answered_.find(id);
    if (found == answered_.end()) return Answer::unknown;
    if (found->second) return Answer::repeated;
    found->second = true;
    --open_;
    return Answer::expected;
  }

  /// Ids without a result, in the order of the calls.
  std::vector<std::string> missing() const {
    std::vector<std::string> ids;
    std::copy_if(order_.begin(), order_.end(), std::back_inserter(ids),
                 [&](const std::string& id) { return !answered_.at(id); });
    return ids;
  }

 private:
  std::vector<std::string> order_;
  std::unordered_map<std::string, bool> answered_;
  std::size_t open_ = 0;
};

}  // namespace thalweg::wire
