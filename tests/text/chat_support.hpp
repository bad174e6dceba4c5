// Short ways to write conversations, and to look at their prompts.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "support/text_data.hpp"
#include "text/chat_encoding.hpp"

namespace thalweg::testing {

inline text::Message user(std::string content) {
  return text::UserMessage{text::Content(std::move(content))};
}

inline text::Message system(std::string content) {
  return text::SystemMessage{text::Content(std::move(content)), {}};
}

inline text::AssistantMessage assistant_message(std::string content, std::string reasoning) {
  text::AssistantMessage message;
  message.content = std::move(content);
  message.reasoning = std::move(reasoning);
  return message;
}

inline text::Message assistant(std::string content, std::string reasoning = "") {
  return assistant_message(std::move(content), std::move(reasoning));
}

inline text::Message prefix(std::string content, std::string reasoning) {
  text::AssistantMessage message = assistant_message(std::move(content), std::move(reasoning));
  message.prefix = true;
  return message;
}

inline text::Tool tool(std::string name) {
  text::Tool made;
  made.name = std::move(name);
  return made;
}

inline text::Conversation chat(std::vector<text::Message> messages) {
  text::Conversation conversation;
  conversation.messages = std::move(messages);
  return conversation;
}

inline text::Conversation chat_off(std::vector<text::Message> messages) {
  text::Conversation conversation = chat(std::move(messages));
  conversation.thinking = false;
  return conversation;
}

inline const text::SpecialTokens& specials() {
  static const text::SpecialTokens found = text::find_special_tokens(released_tokenizer());
  return found;
}

inline std::vector<text::TokenId> ids_of(const text::Conversation& conversation) {
  return encode(render(conversation), released_tokenizer(), specials());
}

/// The effort line.
inline std::string T(int effort) {
  return fmt::format(
      "Reasoning Effort: {} (range 1-100, the higher the value, the more thorough the reasoning)\n\n",
      effort);
}

inline constexpr const char* kSchemaF = R"({"name": "f", "description": "", "parameters": {}})";

inline std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// The prompt with the frequent control tokens abbreviated: {BOS} {EOS} {S} {U} {A} {D}.
inline std::string shown(const text::Conversation& conversation) {
  std::string out = prompt_text(render(conversation), released_tokenizer(), specials());
  out = replace_all(std::move(out), "<｜begin▁of▁sentence｜>", "{BOS}");
  out = replace_all(std::move(out), "<｜end▁of▁sentence｜>", "{EOS}");
  out = replace_all(std::move(out), "<｜System｜>", "{S}");
  out = replace_all(std::move(out), "<｜User｜>", "{U}");
  out = replace_all(std::move(out), "<｜Assistant｜>", "{A}");
  return replace_all(std::move(out), "｜DSML｜", "{D}");
}

/// The tools text around `schemas`, taken from a prompt of the golden cases.
inline std::string TOOLS(const std::string& schemas) {
  static const std::string around = [] {
    const Json file = api_cases("render.json");
    for (const Json& golden : file.at("cases")) {
      if (golden["name"] != "chat one tool") continue;
      const std::string prompt = golden["expect"]["prompt"];
      const auto begin = prompt.find("## Tools");
      return replace_all(prompt.substr(begin, prompt.find("<｜User｜>") - begin), "｜DSML｜", "{D}");
    }
    return std::string();
  }();
  const std::string heading = "### Available Tool Schemas\n\n";
  const auto at = around.find(heading) + heading.size();
  return around.substr(0, at) + schemas + around.substr(around.find("\n\nYou MUST strictly", at));
}

}  // namespace thalweg::testing
