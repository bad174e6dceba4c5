// What holds for every conversation.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "support/random_text.hpp"
#include "text/chat_support.hpp"

namespace thalweg::testing {
namespace {

using text::Control;
using text::Conversation;
using text::TokenId;

/// Texts, names and arguments full of control spellings, in every place that holds text from outside.
Conversation hostile_conversation() {
  const auto text = [] { return *random_text(); };
  Conversation conversation;
  conversation.thinking = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) {
    conversation.tools = {tool(text())};
    conversation.tools[0].description = text();
    conversation.tools[0].parameters["properties"][text()] = text();
  }
  const auto count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
        conversation.messages.push_back(system(text()));
        break;
      case 1:
        conversation.messages.push_back(text::ReminderMessage{text()});
        break;
      case 2:
        conversation.messages.push_back(text::ToolMessage{text::Content(text()), "1"});
        break;
      case 3: {
        text::AssistantMessage message = assistant_message(text(), text());
        Json arguments = Json::object();
        arguments[text()] = text();
        message.calls = {{"1", text(), to_text(arguments)}, {"2", text(), text()}};
        conversation.messages.push_back(message);
        break;
      }
      default:
        conversation.messages.push_back(user(text()));
    }
  }
  return conversation;
}

// Every added token among the ids is one that the renderer wrote as a control.
RC_GTEST_PROP(ChatProperties, TextNeverBecomesAControlToken, ()) {
  const text::Prompt prompt = render(hostile_conversation());
  const auto ids = encode(prompt, released_tokenizer(), specials());
  const auto added =
      std::count_if(ids.begin(), ids.end(), [](TokenId id) { return released_tokenizer().is_added(id); });
  const auto controls =
      std::count_if(prompt.segments.begin(), prompt.segments.end(),
                    [](const text::Segment& segment) { return std::holds_alternative<Control>(segment); });
  RC_ASSERT(added == controls);
}

RC_GTEST_PROP(ChatProperties, PlainTextsAreJoinedAndNeverEmpty, ()) {
  const text::Prompt prompt = render(hostile_conversation());
  bool after_text = false;
  for (const text::Segment& segment : prompt.segments) {
    const auto* plain = std::get_if<std::string>(&segment);
    const bool holds = plain == nullptr || (!plain->empty() && !after_text);
    RC_ASSERT(holds);
    after_text = plain != nullptr;
  }
}

RC_GTEST_PROP(ChatProperties, IdsDecodeToThePromptText, ()) {
  const text::Prompt prompt = render(hostile_conversation());
  const auto ids = encode(prompt, released_tokenizer(), specials());
  RC_ASSERT(released_tokenizer().decode(ids) == prompt_text(prompt, released_tokenizer(), specials()));
}

}  // namespace
}  // namespace thalweg::testing
