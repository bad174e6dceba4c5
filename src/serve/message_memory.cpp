#include "serve/message_memory.hpp"

#include <utility>
#include <variant>

#include "base/error.hpp"
#include "base/json.hpp"

namespace thalweg::serve {
namespace {

// Clients may write the arguments of a call in another layout; what they mean must be the same.
std::string canonical(const std::string& arguments) {
  try {
    return to_text(parse_json(arguments, "arguments"));
  } catch (const InputError&) {
    return arguments;
  }
}

// Lengths in front of the parts: no two messages have one key.
void append(std::string& key, const std::string& part) {
  key += std::to_string(part.size()) + ":" + part;
}

std::string key_of(const std::string& salt, const std::string& content) {
  std::string key;
  append(key, salt);
  append(key, content);
  return key;
}

void append_call(std::string& key, const std::string& id, const std::string& name,
                 const std::string& arguments) {
  append(key, id);
  append(key, name);
  append(key, canonical(arguments));
}

}  // namespace

void MessageMemory::remember(const std::string& salt, const text::ParsedMessage& message,
                             const std::vector<std::string>& call_ids, text::ReplayedIds ids) {
  const bool by_itself = message.finish_reason == text::FinishReason::stop ||
                         message.finish_reason == text::FinishReason::tool_calls;
  if (!by_itself || message.stop_sequence) return;
  Entry entry;
  entry.key = key_of(salt, message.content);
  for (std::size_t i = 0; i < message.calls.size(); ++i) {
    if (!message.calls[i].complete) return;
    append_call(entry.key, call_ids.at(i), message.calls[i].name, message.calls[i].arguments);
  }
  entry.reasoning = message.reasoning.value_or("");
  entry.ids = std::move(ids);
  const std::lock_guard lock(mutex_);
  if (entry.bytes() > limit_) return;
  if (const auto known = by_key_.find(entry.key); known != by_key_.end()) {
    bytes_ -= known->second->bytes();
    entries_.erase(known->second);
    by_key_.erase(known);
  }
  bytes_ += entry.bytes();
  entries_.push_front(std::move(entry));
  by_key_[entries_.front().key] = entries_.begin();
  while (bytes_ > limit_) {
    bytes_ -= entries_.back().bytes();
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

void MessageMemory::recall(const std::string& salt, text::Conversation& conversation) {
  for (text::Message& message : conversation.messages) {
    auto* assistant = std::get_if<text::AssistantMessage>(&message);
    if (assistant == nullptr || assistant->prefix) continue;
    std::string key = key_of(salt, assistant->content);
    for (const text::Call& call : assistant->calls) append_call(key, call.id, call.name, call.arguments);
    const std::lock_guard lock(mutex_);
    const auto known = by_key_.find(key);
    if (known == by_key_.end()) continue;
    const Entry& entry = *known->second;
    if (!assistant->reasoning.empty() && assistant->reasoning != entry.reasoning) continue;
    assistant->replayed = entry.ids;
    entries_.splice(entries_.begin(), entries_, known->second);
  }
}

}  // namespace thalweg::serve
