#include "engine/output.hpp"

#include <utility>

namespace thalweg::engine {

Output::Output(const text::Tokenizer& tokenizer, const text::SpecialTokens* specials, const Request& request,
               std::shared_ptr<const StopStrings> stops)
    : detokenizer_(tokenizer),
      matcher_(request.parse ? nullptr : stops, request.sampling.include_stop),
      stops_(std::move(stops)) {
  if (request.parse) parser_.emplace(*request.parse, tokenizer, *specials);
}

bool Output::push(std::int32_t token, bool armed, Event& event) {
  if (parser_) {
    parser_->feed(token, event.parsed);
    if (!event.parsed.empty() && event.parsed.back().kind == text::ParseEvent::Kind::stop) {
      event.stop_string = event.parsed.back().text;
    }
    return parser_->stopped();
  }
  StopMatcher::Shown shown = matcher_.push(detokenizer_.push(token), armed);
  event.text += shown.text;
  if (!shown.stop) return false;
  event.stop_string = (*stops_)[*shown.stop];
  return true;
}

void Output::finish(Event& event) {
  if (parser_) {
    parser_->finish(event.parsed);
    return;
  }
  detokenizer_.finish();
  event.text += matcher_.finish();
}

}  // namespace thalweg::engine
