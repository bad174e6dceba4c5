// The rules of docs/output_parsing.md in the plainest form: the whole output is known, every marker is
// compared at every symbol. An oracle for the streaming parser, slow on purpose.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "text/json_escape.hpp"
#include "text/output_parser_support.hpp"

namespace thalweg::testing {

/// Symbols of an output: bytes, kEndThink, kDsml, and any other value for other special tokens.
using Symbols = std::u16string;

/// The text of one symbol.
using Speller = std::function<std::string(char16_t)>;

class ReferenceParser {
 public:
  /// `end_think` and `dsml` are what </think> and ｜DSML｜ are made of: one symbol each, or their bytes.
  ReferenceParser(ParserStart start, Symbols end_think, Symbols dsml, Speller speller)
      : start_(std::move(start)),
        end_think_(std::move(end_think)),
        dsml_(std::move(dsml)),
        speller_(std::move(speller)) {}

  std::vector<ParseEvent> parse(const Symbols& symbols) {
    const bool thinks =
        start_.stage == ParserStage::reasoning || start_.stage == ParserStage::reasoning_continuation;
    leading_ = start_.stage == ParserStage::reasoning || start_.stage == ParserStage::answer;
    state_ = start_.starts_in_tool_calls ? "calls" : thinks ? "reasoning" : answer();
    for (const char16_t symbol : symbols) step(symbol);
    give(buffer_);
    if (state_ == "raw" && !collected_.empty()) emit(Kind::arguments, collected_);
    return std::exchange(events_, {});
  }

 private:
  struct Rule {
    Symbols marker;
    std::string action;
    bool newlines = false;
  };

  static Symbols plain(std::string_view text) {
    Symbols symbols;
    for (const char c : text) symbols += static_cast<unsigned char>(c);
    return symbols;
  }

  std::string answer() const { return start_.parse_json_output ? "seek" : "answer"; }

  std::vector<Rule> rules() const {
    std::vector<Rule> rules;
    if (state_ == "answer" || state_ == "json") {
      for (const std::string& stop : start_.stop_sequences) rules.push_back({plain(stop), "stop " + stop});
    }
    if (state_ == "seek") {
      for (const char* fence : {"```json\n", "```\n"}) rules.push_back({plain(fence), "fence"});
      for (const char* bracket : {"{", "["}) rules.push_back({plain(bracket), bracket});
    }
    const bool text = state_ == "reasoning" || state_ == "answer" || state_ == "seek" || state_ == "after";
    if (text && start_.parse_tool_calls) rules.push_back({plain("<") + dsml_, "calls", true});
    if (state_ == "reasoning") rules.push_back({end_think_, "answer", true});
    if (state_ == "answer" || state_ == "seek") rules.push_back({end_think_, "drop"});
    if (state_ == "json") rules.push_back({plain("\n```"), "after"});
    if (state_ == "calls") {
      rules.push_back({plain("invoke name=\""), "name"});
      rules.push_back({plain("</") + dsml_ + plain(" calls>"), "done"});
      rules.push_back({plain("</") + dsml_ + plain("tool_calls>"), "done"});
    }
    if (state_ == "name") rules.push_back({plain("\""), "begin"});
    if (state_ == "arguments") {
      rules.push_back({plain("parameter name=\""), "key"});
      rules.push_back({plain("</") + dsml_, "end"});
    }
    if (state_ == "key") rules.push_back({plain("\""), "type"});
    if (state_ == "type") {
      rules.push_back({plain("true\">"), "string"});
      rules.push_back({plain("false\">"), "raw"});
    }
    if (state_ == "string" || state_ == "raw") rules.push_back({plain("</") + dsml_, "end " + state_});
    return rules;
  }

  void step(char16_t symbol) {
    buffer_ += symbol;
    if (state_ == "done") return;
    const std::vector<Rule> watched = rules();
    for (const Rule& rule : watched) {
      if (!buffer_.ends_with(rule.marker)) continue;
      std::size_t match = buffer_.size() - rule.marker.size();
      while (rule.newlines && match > 0 && buffer_[match - 1] == u'\n') --match;
      give(buffer_.substr(0, match));
      buffer_.clear();
      return act(rule.action);
    }
    if (leading_ && buffer_ == u"\n") buffer_.clear();
  }

  void give(const Symbols& symbols) {
    std::string text;
    for (const char16_t symbol : symbols) text += speller_(symbol);
    if (text.empty()) return;
    if (state_ == "reasoning") emit(Kind::reasoning, text);
    if (state_ == "answer" || state_ == "json") emit(Kind::content, text);
    if (state_ == "seek" || state_ == "after") emit(Kind::content, std::exchange(blank_, true) ? "" : " ");
    if (state_ == "name" || state_ == "raw") collected_ = text;
    if (state_ == "key" || state_ == "string") {
      const std::string quoted = text::json_quoted(text);
      emit(Kind::arguments, quoted.substr(1, quoted.size() - 2));
    }
  }

  void act(const std::string& action) {
    leading_ = state_ == "reasoning" && action == "answer";
    if (action == "drop") return;
    if (action == "{" || action == "[") {
      emit(Kind::content, action);
      state_ = "json";
    } else if (action.starts_with("stop ")) {
      emit(Kind::stop, action.substr(5));
      state_ = "done";
    } else if (action == "fence") {
      state_ = "json";
    } else if (action == "after") {
      blank_ = false;
      state_ = action;
    } else if (action == "answer") {
      state_ = answer();
    } else {
      act_on_call(action);
    }
  }

  void act_on_call(const std::string& action) {
    if (action == "begin") {
      ++calls_;
      emit(Kind::call, std::exchange(collected_, {}));
      first_ = true;
      state_ = "arguments";
    } else if (action == "key") {
      emit(Kind::arguments, std::exchange(first_, false) ? "{\"" : ", \"");
      state_ = action;
    } else if (action == "type") {
      emit(Kind::arguments, "\": ");
      state_ = action;
    } else if (action == "end string") {
      emit(Kind::arguments, "\"");
      state_ = "arguments";
    } else if (action == "end raw") {
      const std::string raw = std::exchange(collected_, {});
      emit(Kind::arguments, is_json(raw) ? raw : text::json_quoted(raw));
      state_ = "arguments";
    } else if (action == "end") {
      emit(Kind::arguments, first_ ? "{}" : "}");
      emit(Kind::call_end, "");
      state_ = "calls";
    } else {
      if (action == "string") emit(Kind::arguments, "\"");
      state_ = action;  // calls, name, string, raw, done
    }
  }

  static bool is_json(const std::string& text) {
    try {
      parse_json("[" + text + "]", "value");
      parse_json(text, "value");
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  void emit(Kind kind, const std::string& text) {
    const bool piece = kind == Kind::reasoning || kind == Kind::content || kind == Kind::arguments;
    if (piece && text.empty()) return;
    const bool of_call = kind == Kind::call || kind == Kind::arguments || kind == Kind::call_end;
    events_.push_back({kind, of_call ? calls_ - 1 : 0, text});
    Output joined{events_};
    events_ = joined.events();
  }

  ParserStart start_;
  Symbols end_think_, dsml_;
  Speller speller_;
  std::string state_;
  Symbols buffer_;  // since the state was entered
  bool leading_ = false;
  bool first_ = true;
  bool blank_ = false;
  std::string collected_;
  std::size_t calls_ = 0;
  std::vector<ParseEvent> events_;
};

}  // namespace thalweg::testing
