// The message list of Chat Completions.
#pragma once

#include <vector>

#include "text/conversation.hpp"
#include "wire/fields.hpp"

namespace thalweg::wire {

struct ChatMessagesOptions {
  bool continues = false;  ///< the last message is to be continued, as with `prefix: true` on it
  bool has_tools = false;  ///< tools are declared, which excludes a prefix
};

/// Reads `messages` of `body`. Empty system messages are left out. Checks that calls and results belong
/// together.
std::vector<text::Message> read_chat_messages(Fields& body, const ChatMessagesOptions& options);

}  // namespace thalweg::wire
