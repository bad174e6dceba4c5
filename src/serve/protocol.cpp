#include "serve/protocol.hpp"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "serve/logprobs.hpp"

namespace thalweg::serve {
namespace {

using Kind = text::ParseEvent::Kind;

std::string random_text(std::string_view alphabet, std::size_t length) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::uniform_int_distribution<std::size_t> pick(0, alphabet.size() - 1);
  std::string text(length, '\0');
  for (char& c : text) c = alphabet[pick(random)];
  return text;
}

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kLettersAndDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

}  // namespace

std::string make_call_id(std::size_t index) {
  return fmt::format("call_{:02}_{}{}", index, random_text(kLettersAndDigits, 20), random_text(kDigits, 4));
}

std::string make_id(std::string_view prefix) {
  return std::string(prefix) + random_text(kLettersAndDigits, 24);
}

AnswerContext answer_context(const wire::Request& request, AnswerHead head, const text::Tokenizer& tokenizer,
                             Json body) {
  AnswerContext context;
  context.head = std::move(head);
  context.stream = request.stream;
  context.include_usage = request.include_usage;
  context.thinking = request.conversation.thinking;
  context.stage = request.parsing.stage;
  context.choices = static_cast<std::int32_t>(request.inference.choices);
  context.logprobs = request.inference.logprobs;
  context.tokenizer = &tokenizer;
  context.tool_origins = request.tool_origins;
  context.body = std::move(body);
  context.stored = request.store.value_or(false);
  return context;
}

Protocol::Protocol(AnswerContext context)
    : context_(std::move(context)),
      choices_(static_cast<std::size_t>(context_.choices)),
      open_(static_cast<std::size_t>(context_.choices)) {}

void Protocol::begin(const PromptUsage& usage) {
  usage_ = usage;
  begun_ = true;
  on_begin();
}

void Protocol::add(const AnswerPart& part) {
  Choice& of = choice(part.choice);
  of.parts.add(part.event);
  if (part.event.kind == Kind::reasoning) of.reasoning += part.event.text;
  if (part.event.kind == Kind::call) of.call_ids.push_back(make_call_id(part.event.call));
  Json logprobs = Json::array();
  for (const TokenLogprob& logprob : part.logprobs) {
    logprobs.push_back(logprob_json(logprob, *context_.tokenizer));
    (part.event.kind == Kind::reasoning ? of.reasoning_logprobs : of.content_logprobs)
        .push_back(logprobs.back());
  }
  on_part(part, logprobs);
}

void Protocol::end(const AnswerEnd& end) {
  Choice& of = choice(end.choice);
  output_tokens_ += end.output_tokens;
  // For what a model writes this is the number of tokens before </think>, less newlines.
  reasoning_tokens_ += static_cast<std::int64_t>(context_.tokenizer->encode_plain(of.reasoning).size());
  of.message = of.parts.finish(end.finish);
  --open_;
  on_end(end.choice, end.finish);
}

void Protocol::send(const Json& data) {
  if (streams()) out_ += "data: " + to_text(data) + "\n\n";
}

void Protocol::send(std::string_view event, const Json& data) {
  if (streams()) out_ += fmt::format("event: {}\ndata: {}\n\n", event, to_text(data));
}

void Protocol::send_raw(std::string_view text) {
  if (streams()) out_ += text;
}

Json Protocol::openai_usage() const {
  Json usage = {{"prompt_tokens", usage_.prompt_tokens},
                {"completion_tokens", output_tokens_},
                {"total_tokens", usage_.prompt_tokens + output_tokens_},
                {"prompt_tokens_details", {{"cached_tokens", usage_.cached_tokens}}}};
  if (context_.thinking) usage["completion_tokens_details"] = {{"reasoning_tokens", reasoning_tokens_}};
  usage["prompt_cache_hit_tokens"] = usage_.cached_tokens;
  usage["prompt_cache_miss_tokens"] = usage_.prompt_tokens - usage_.cached_tokens;
  return usage;
}

}  // namespace thalweg::serve
