#include "text/output_parser.hpp"

#include <stdexcept>
#include <utility>

#include "text/json_escape.hpp"
#include "text/json_value.hpp"
#include "text/parser_markup.hpp"
#include "text/utf8.hpp"

namespace thalweg::text {
namespace {

using Kind = ParseEvent::Kind;
using Events = std::vector<ParseEvent>;

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The object around a value takes one of the levels that parse_json reads by default.
constexpr std::size_t kValueDepth = JsonLimits{}.depth - 1;

bool joins(Kind kind) {
  return kind == Kind::reasoning || kind == Kind::content || kind == Kind::arguments;
}

}  // namespace

OutputParser::OutputParser(const ParserStart& start) : state_(ParserState::done) {
  check(start, "output parser");
  markup_ = make_parser_markup(start, MarkupForm::text);
  if (start.starts_in_tool_calls) {
    enter(ParserState::calls);
  } else if (start.stage == ParserStage::reasoning || start.stage == ParserStage::reasoning_continuation) {
    enter(ParserState::reasoning, start.stage == ParserStage::reasoning);
  } else {
    enter(answer_state(), start.stage == ParserStage::answer);
  }
}

OutputParser::OutputParser(const ParserStart& start, const Tokenizer& tokenizer,
                           const SpecialTokens& specials)
    : OutputParser(start) {
  markup_ = make_parser_markup(start, MarkupForm::tokens);
  tokenizer_ = &tokenizer;
  end_think_ = specials.end_think;
  dsml_ = specials.dsml;
}

void OutputParser::feed(TokenId id, Events& events) {
  if (!tokenizer_) throw std::logic_error("a parser of text was fed a token");
  const std::string_view bytes = tokenizer_->token_bytes(id);
  if (!tokenizer_->is_added(id)) return feed(bytes, events);
  if (!unfinished_.empty()) {
    unfinished_.clear();
    feed_character(kReplacement, events);
  }
  feed_symbol(id == end_think_ ? kEndThink : id == dsml_ ? kDsml : kOtherSpecial, bytes, events);
  release(events);
}

void OutputParser::feed(std::string_view text, Events& events) {
  std::string joined;
  if (!unfinished_.empty()) {
    joined = std::exchange(unfinished_, {});
    joined += text;
    text = joined;
  }
  while (!text.empty() && state_ != ParserState::done) {
    const Utf8Unit unit = read_utf8(text);
    if (unit.state == Utf8State::unfinished) {
      unfinished_ = text;
      break;
    }
    feed_character(unit.state == Utf8State::complete ? text.substr(0, unit.length) : kReplacement, events);
    text.remove_prefix(unit.length);
  }
  release(events);
}

void OutputParser::feed_character(std::string_view bytes, Events& events) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    feed_symbol(static_cast<unsigned char>(bytes[i]), bytes.substr(i, 1), events);
  }
}

void OutputParser::feed_symbol(Symbol symbol, std::string_view spelling, Events& events) {
  if (state_ == ParserState::done) return;
  const MarkerSet& set = markup_->watched[static_cast<std::size_t>(state_)]->set;
  if (leading_ && at_start_ && symbol == '\n' && !set.completes_at_once(symbol)) return;
  at_start_ = false;
  if (const auto marker = set.advance(position_, symbol, spelling, released_)) {
    release(events);
    act(*marker, spelling, events);
  }
}

// Gives `released_`, text of the current state, to where it belongs.
void OutputParser::release(Events& events) {
  if (released_.empty()) return;
  switch (state_) {
    case ParserState::reasoning:
      emit(Kind::reasoning, released_, events);
      break;
    case ParserState::answer:
    case ParserState::json:
      emit(Kind::content, released_, events);
      break;
    case ParserState::seek_json:
    case ParserState::after_json:
      if (!std::exchange(has_blank_, true)) emit(Kind::content, " ", events);
      break;
    case ParserState::name:
    case ParserState::raw_value:
      collected_.append(released_);
      break;
    case ParserState::key:
    case ParserState::string_value: {
      std::string escaped;
      append_json_escaped(escaped, released_);
      emit_arguments(escaped, events);
      break;
    }
    case ParserState::calls:
    case ParserState::arguments:
    case ParserState::type:
    case ParserState::done:
      break;
  }
  released_.clear();
}

void OutputParser::act(std::size_t marker, std::string_view spelling, Events& events) {
  const MarkerAction action = markup_->watched[static_cast<std::size_t>(state_)]->actions[marker];
  switch (action) {
    case MarkerAction::stop:
      emit(Kind::stop, markup_->start.stop_sequences[marker], events);
      stopped_ = true;
      return enter(ParserState::done);
    case MarkerAction::open_block:
      return enter(ParserState::calls);
    case MarkerAction::end_reasoning:
      return enter(answer_state(), true);
    case MarkerAction::drop:
      return enter(state_);
    case MarkerAction::open_fence:
      return enter(ParserState::json);
    case MarkerAction::open_bracket:
      emit(Kind::content, spelling, events);
      return enter(ParserState::json);
    case MarkerAction::close_fence:
      has_blank_ = false;
      return enter(ParserState::after_json);
    default:
      return act_on_call(action, events);
  }
}

void OutputParser::act_on_call(MarkerAction action, Events& events) {
  switch (action) {
    case MarkerAction::begin_name:
      return enter(ParserState::name);
    case MarkerAction::end_block:
      return enter(ParserState::done);
    case MarkerAction::end_name:
      ++calls_;
      emit(Kind::call, collected_.str(), events);
      has_parameter_ = false;
      return enter(ParserState::arguments);
    case MarkerAction::begin_key:
      emit_arguments(std::exchange(has_parameter_, true) ? ", \"" : "{\"", events);
      return enter(ParserState::key);
    case MarkerAction::end_call:
      emit_arguments(has_parameter_ ? "}" : "{}", events);
      emit(Kind::call_end, {}, events);
      return enter(ParserState::calls);
    case MarkerAction::end_key:
      emit_arguments("\": ", events);
      return enter(ParserState::type);
    case MarkerAction::begin_string:
      emit_arguments("\"", events);
      return enter(ParserState::string_value);
    case MarkerAction::begin_raw:
      return enter(ParserState::raw_value);
    case MarkerAction::end_string:
      emit_arguments("\"", events);
      return enter(ParserState::arguments);
    case MarkerAction::end_raw:
      emit_raw_value(events);
      return enter(ParserState::arguments);
    default:
      throw std::logic_error("a marker outside of calls");
  }
}

void OutputParser::finish(Events& events) {
  unfinished_.clear();
  if (state_ == ParserState::done) return;
  markup_->watched[static_cast<std::size_t>(state_)]->set.append_held(position_, released_);
  release(events);
  end_cut_arguments(events);
  enter(ParserState::done);
}

OutputParser::Section OutputParser::section() const {
  switch (state_) {
    case ParserState::reasoning:
      return Section::reasoning;
    case ParserState::answer:
    case ParserState::seek_json:
    case ParserState::json:
    case ParserState::after_json:
      return Section::answer;
    case ParserState::done:
      return Section::done;
    default:
      return Section::calls;
  }
}

void OutputParser::enter(ParserState state, bool leading) {
  state_ = state;
  leading_ = leading;
  at_start_ = true;
  position_ = {};
  collected_.clear();
}

ParserState OutputParser::answer_state() const {
  return markup_->start.parse_json_output ? ParserState::seek_json : ParserState::answer;
}

void OutputParser::emit(Kind kind, std::string_view text, Events& events) const {
  const bool of_call = kind == Kind::call || kind == Kind::arguments || kind == Kind::call_end;
  const std::size_t call = of_call ? calls_ - 1 : 0;
  if (joins(kind) && !events.empty() && events.back().kind == kind && events.back().call == call) {
    events.back().text += text;
  } else {
    events.push_back({kind, call, std::string(text)});
  }
}

void OutputParser::emit_arguments(std::string_view text, Events& events) const {
  emit(Kind::arguments, text, events);
}

// A value that claims to be JSON and is not is given as a string, so that the arguments stay JSON.
void OutputParser::emit_raw_value(Events& events) {
  const std::string value = collected_.str();
  emit_arguments(is_json_value(value, kValueDepth) ? value : json_quoted(value), events);
}

void OutputParser::end_cut_arguments(Events& events) {
  if (markup_->start.cut_arguments == CutArguments::as_streamed) {
    if (state_ == ParserState::raw_value && !collected_.empty()) emit_arguments(collected_.str(), events);
    return;
  }
  switch (state_) {
    case ParserState::arguments:
      return emit_arguments(has_parameter_ ? "}" : "{}", events);
    case ParserState::key:
      return emit_arguments("\": null}", events);
    case ParserState::type:
      return emit_arguments("null}", events);
    case ParserState::string_value:
      return emit_arguments("\"}", events);
    case ParserState::raw_value:
      if (collected_.empty()) return emit_arguments("null}", events);
      emit_raw_value(events);
      return emit_arguments("}", events);
    default:
      return;
  }
}

}  // namespace thalweg::text
