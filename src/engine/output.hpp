// The text side of one answer: from tokens to what the client sees, and the stop strings in it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/request.hpp"
#include "engine/sampling/stop_matcher.hpp"
#include "text/detokenizer.hpp"
#include "text/output_parser.hpp"

namespace thalweg::engine {

/// A value: copying it remembers a position. Not for two threads at once.
class Output {
 public:
  /// `stops`: the request's stop strings; chat output has them in its parser instead.
  Output(const text::Tokenizer& tokenizer, const text::SpecialTokens* specials, const Request& request,
         std::shared_ptr<const StopStrings> stops);

  /// Takes a token that is not the end of the answer by itself; fills `event.text` or `event.parsed`, and
  /// `event.stop_string` when a stop string ended the answer (then true is returned). `armed`: stop strings
  /// count.
  bool push(std::int32_t token, bool armed, Event& event);
  /// The answer is over: releases what was held back.
  void finish(Event& event);

 private:
  text::Detokenizer detokenizer_;
  StopMatcher matcher_;
  std::shared_ptr<const StopStrings> stops_;
  std::optional<text::OutputParser> parser_;
};

}  // namespace thalweg::engine
