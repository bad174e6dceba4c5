// From what a model generates to reasoning, content and tool calls, as it arrives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/held_text.hpp"
#include "text/marker_matcher.hpp"
#include "text/parsed_message.hpp"
#include "text/parser_start.hpp"
#include "text/special_tokens.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::text {

struct ParserMarkup;
enum class MarkerAction : std::uint8_t;
enum class ParserState : std::uint8_t;

/// A streaming state machine over the model's output; docs/output_parsing.md has its states and rules.
///
/// Made for tokens, the parser takes only real special tokens for markup: the same characters spelled with
/// ordinary tokens are text. Made for text, it takes the spelling for markup. However the input is cut into
/// pieces, the concatenated events are the same. Every piece of text given out is whole UTF-8 characters,
/// ill-formed bytes replaced by U+FFFD; an unfinished character at the very end is dropped. Time is linear in
/// the input.
///
/// A value: copy it to remember a position, assign it back to roll rejected tokens back. A copy is small (at
/// most about 1 KiB, whatever was fed). Copies are independent; one object is not for use by two threads at
/// once.
class OutputParser {
 public:
  /// Which part of the message what comes next belongs to.
  enum class Section {
    reasoning,
    answer,
    calls,  ///< inside the calls block
    done,   ///< whatever follows is dropped: generation may as well end
  };

  /// A parser of text, in which markup is spelled. Throws InputError if `start` is not valid.
  explicit OutputParser(const ParserStart& start);

  /// A parser of tokens. `tokenizer` must outlive it and its copies. Throws InputError if `start` is not
  /// valid.
  OutputParser(const ParserStart& start, const Tokenizer& tokenizer, const SpecialTokens& specials);

  /// Feeds one generated token; only for a parser of tokens. Appends what it completes to `events` (a piece
  /// of the same kind as the last event is joined to it). EOS must not be fed: it would be shown. Ids outside
  /// the vocabulary add nothing.
  void feed(TokenId id, std::vector<ParseEvent>& events);

  /// Feeds ordinary text, cut anywhere, also inside a character. For a parser of tokens it holds no markup.
  void feed(std::string_view text, std::vector<ParseEvent>& events);

  /// The end of the output: releases what is held as text, and closes cut arguments if so asked.
  void finish(std::vector<ParseEvent>& events);

  Section section() const;

  /// A stop sequence was met: generation must end.
  bool stopped() const { return stopped_; }

 private:
  void feed_character(std::string_view bytes, std::vector<ParseEvent>& events);
  void feed_symbol(Symbol symbol, std::string_view spelling, std::vector<ParseEvent>& events);
  void release(std::vector<ParseEvent>& events);
  void act(std::size_t marker, std::string_view spelling, std::vector<ParseEvent>& events);
  void act_on_call(MarkerAction action, std::vector<ParseEvent>& events);
  void enter(ParserState state, bool leading = false);
  ParserState answer_state() const;
  void emit(ParseEvent::Kind kind, std::string_view text, std::vector<ParseEvent>& events) const;
  void emit_arguments(std::string_view text, std::vector<ParseEvent>& events) const;
  void emit_raw_value(std::vector<ParseEvent>& events);
  void end_cut_arguments(std::vector<ParseEvent>& events);

  std::shared_ptr<const ParserMarkup> markup_;  ///< what is looked for in each state
  const Tokenizer* tokenizer_ = nullptr;        ///< null for a parser of text
  TokenId end_think_ = -1;
  TokenId dsml_ = -1;

  ParserState state_;
  bool leading_ = false;  ///< a newline as first symbol of the state is dropped
  bool at_start_ = true;  ///< no symbol was fed since the state was entered
  bool stopped_ = false;
  bool has_parameter_ = false;  ///< the current call has at least one
  bool has_blank_ = false;      ///< a blank already stands for the dropped text of this JSON-mode state
  std::size_t calls_ = 0;       ///< begun so far
  MarkerSet::Position position_;
  std::string unfinished_;  ///< bytes of a character that more bytes could complete
  std::string released_;    ///< text of the current feed not yet given out; empty between calls
  HeldText collected_;      ///< the name, or the raw value, so far
};

}  // namespace thalweg::text
