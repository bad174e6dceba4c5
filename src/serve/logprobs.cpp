#include "serve/logprobs.hpp"

#include <fmt/format.h>

#include <iterator>

#include "text/utf8.hpp"

namespace thalweg::serve {
namespace {

using Kind = text::ParseEvent::Kind;

Json ranked_json(const RankedToken& ranked, const text::Tokenizer& tokenizer) {
  Json bytes = Json::array();
  for (const char byte : tokenizer.token_bytes(ranked.token))
    bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", token_spelling(ranked.token, tokenizer)},
          {"logprob", ranked.logprob},
          {"bytes", std::move(bytes)}};
}

bool is_text(const text::ParseEvent& event) {
  return event.kind == Kind::content || event.kind == Kind::reasoning;
}

}  // namespace

std::string token_spelling(text::TokenId token, const text::Tokenizer& tokenizer) {
  const std::string_view bytes = tokenizer.token_bytes(token);
  if (text::find_ill_formed_utf8(bytes) == bytes.size()) return std::string(bytes);
  std::string escaped;
  for (const char byte : bytes) escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return escaped;
}

Json logprob_json(const TokenLogprob& logprob, const text::Tokenizer& tokenizer) {
  Json json = ranked_json(logprob.chosen, tokenizer);
  Json top = Json::array();
  for (const RankedToken& other : logprob.top) top.push_back(ranked_json(other, tokenizer));
  json["top_logprobs"] = std::move(top);
  return json;
}

void LogprobSorter::sort(const engine::Event& event, std::vector<AnswerPart>& parts) {
  // An answer that stops does so with a token that is no text: the end of sequence or the end of a stop
  // string.
  const bool stopped = event.finish == engine::Finish::stop;
  AnswerPart* last_text = nullptr;
  for (AnswerPart& part : parts) {
    in_calls_ = in_calls_ || part.event.kind == Kind::call;
    if (is_text(part.event)) last_text = &part;
  }
  const bool is_markup =
      specials_ != nullptr && event.token &&
      (*event.token == specials_->end_think || (tools_ && *event.token == specials_->dsml));
  if (event.token && event.logprobs != nullptr && !is_markup && !in_calls_ && !stopped) {
    TokenLogprob logprob{{*event.token, event.logprobs->raw.chosen}, {}};
    for (const engine::TokenLogprob& other : event.logprobs->raw.top) {
      logprob.top.push_back({other.token, other.logprob});
    }
    waiting_.push_back(std::move(logprob));
  }
  if (last_text != nullptr) {
    std::move(waiting_.begin(), waiting_.end(), std::back_inserter(last_text->logprobs));
    waiting_.clear();
  }
  // What was held back for markup that is now complete was part of it.
  if (is_markup || in_calls_ || stopped) waiting_.clear();
}

}  // namespace thalweg::serve
