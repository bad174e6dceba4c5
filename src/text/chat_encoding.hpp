// The prompt format of DeepSeek-V4.1: a conversation becomes plain text, control tokens, image placeholders
// and replayed ids. docs/chat_encoding.md has the rules and where they differ from other encoders.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "text/conversation.hpp"
#include "text/parser_start.hpp"
#include "text/special_tokens.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::text {

/// A control token that the renderer itself writes. Text can never become one.
enum class Control { bos, eos, system, user, assistant, think, end_think, dsml, latest_reminder };

/// The place of an image: one placeholder token here, expanded before prefill.
struct ImageSlot {
  std::size_t index = 0;  ///< into Prompt::images
};

/// Plain text (never empty, never next to other plain text), or what stands between plain texts.
using Segment = std::variant<std::string, Control, ImageSlot, std::vector<TokenId>>;

struct Prompt {
  std::vector<Segment> segments;
  std::vector<Image> images;  ///< in prompt order
};

/// Renders `conversation` up to where the model has to go on. Linear in its size. A prefix anywhere but on a
/// last assistant message has no effect; callers refuse it. Tool choice `required` asks for thinking off.
Prompt render(Conversation conversation);

/// State of the output parser after that prompt; stop sequences are left empty.
ParserStart parser_start(const Conversation& conversation);

/// Ids of a prompt: each plain text is encoded by itself, as ordinary text. Throws InputError for invalid
/// UTF-8.
std::vector<TokenId> encode(const Prompt& prompt, const Tokenizer& tokenizer, const SpecialTokens& specials);

/// The prompt as a reader would see it, control tokens spelled out.
std::string prompt_text(const Prompt& prompt, const Tokenizer& tokenizer, const SpecialTokens& specials);

}  // namespace thalweg::text
