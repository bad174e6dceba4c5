// Generated messages, kept as the ids they were generated as. A client that sends a message back as it got it
// then gets the same ids in its prompt, and the cache holds all of it: text encoded anew may come out as
// other tokens.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/conversation.hpp"
#include "text/parsed_message.hpp"

namespace thalweg::serve {

/// Bounded; forgets the message that was longest not used. Thread-safe.
class MessageMemory {
 public:
  /// `limit` in bytes; 0 remembers nothing.
  explicit MessageMemory(std::size_t limit) : limit_(limit) {}

  /// Keeps a message that the model ended by itself; others are not kept. `salt` names whose it is.
  void remember(const std::string& salt, const text::ParsedMessage& message,
                const std::vector<std::string>& call_ids, text::ReplayedIds ids);

  /// Gives the assistant messages of `conversation` that are known the ids they were generated as. A message
  /// is known if content and calls are the same; reasoning may be missing, but not differ.
  void recall(const std::string& salt, text::Conversation& conversation);

 private:
  struct Entry {
    std::string key;
    std::string reasoning;
    text::ReplayedIds ids;

    std::size_t bytes() const {
      return 2 * key.size() + reasoning.size() + ids.ids.size() * sizeof(text::TokenId);
    }
  };

  std::mutex mutex_;
  std::size_t limit_;
  std::size_t bytes_ = 0;
  std::list<Entry> entries_;  ///< last used first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
};

}  // namespace thalweg::serve
