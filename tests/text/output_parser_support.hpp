// Running the output parser in tests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "text/output_parser.hpp"
#include "text/utf8.hpp"

namespace thalweg::testing {

using text::MessageAccumulator;
using text::OutputParser;
using text::ParsedMessage;
using text::ParseEvent;
using text::ParserStage;
using text::ParserStart;
using Kind = text::ParseEvent::Kind;

/// ｜DSML｜ as the released model spells it.
inline const std::string kD = "｜DSML｜";

/// The tokenizer of the bundled checkpoint, and its special tokens.
struct Vocabulary {
  text::Tokenizer tokenizer =
      text::Tokenizer::load(std::string(THALWEG_SOURCE_DIR) + "/models/mini/tokenizer.json");
  text::SpecialTokens specials = text::find_special_tokens(tokenizer);
};

inline const Vocabulary& mini_vocabulary() {
  static const Vocabulary vocabulary;
  return vocabulary;
}

/// All that came out of a parser: every piece on its own, as it was given out.
struct Output {
  std::vector<ParseEvent> pieces;

  /// Neighbouring pieces of one kind joined.
  std::vector<ParseEvent> events() const {
    std::vector<ParseEvent> joined;
    for (const ParseEvent& piece : pieces) {
      const bool joins =
          piece.kind == Kind::reasoning || piece.kind == Kind::content || piece.kind == Kind::arguments;
      if (joins && !joined.empty() && joined.back().kind == piece.kind && joined.back().call == piece.call) {
        joined.back().text += piece.text;
      } else {
        joined.push_back(piece);
      }
    }
    return joined;
  }

  ParsedMessage message(text::BackendFinish finish = text::BackendFinish::stop) const {
    MessageAccumulator accumulator;
    for (const ParseEvent& piece : pieces) accumulator.add(piece);
    return accumulator.finish(finish);
  }

  bool whole_characters() const {
    for (const ParseEvent& piece : pieces) {
      if (text::find_ill_formed_utf8(piece.text) != piece.text.size()) return false;
    }
    return true;
  }

  bool operator==(const Output& other) const { return events() == other.events(); }
};

inline void take(Output& output, std::vector<ParseEvent>& events) {
  output.pieces.insert(output.pieces.end(), events.begin(), events.end());
  events.clear();
}

/// Feeds text cut into `chunks`.
inline Output parse_chunks(const ParserStart& start, const std::vector<std::string>& chunks) {
  OutputParser parser(start);
  Output output;
  std::vector<ParseEvent> events;
  for (const std::string& chunk : chunks) {
    parser.feed(std::string_view(chunk), events);
    take(output, events);
  }
  parser.finish(events);
  take(output, events);
  return output;
}

inline Output parse_text(const ParserStart& start, const std::string& text) {
  return parse_chunks(start, {text});
}

/// Feeds token ids one by one.
inline Output parse_ids(const ParserStart& start, const text::Tokenizer& tokenizer,
                        const text::SpecialTokens& specials, const std::vector<text::TokenId>& ids) {
  OutputParser parser(start, tokenizer, specials);
  Output output;
  std::vector<ParseEvent> events;
  for (const text::TokenId id : ids) {
    parser.feed(id, events);
    take(output, events);
  }
  parser.finish(events);
  take(output, events);
  return output;
}

/// Cuts `text` behind every byte.
inline std::vector<std::string> split_bytes(const std::string& text) {
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  return bytes;
}

/// Cuts `text` behind every character.
inline std::vector<std::string> split_characters(std::string_view text) {
  std::vector<std::string> characters;
  while (!text.empty()) {
    const std::size_t length = text::read_utf8(text).length;
    characters.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return characters;
}

/// `text` with runs of blanks squeezed to one.
inline std::string squeeze_blanks(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' || out.empty() || out.back() != ' ') out += c;
  }
  return out;
}

/// A calls block with one call of `f` that holds `inside`, as spelled text.
inline std::string one_call(const std::string& inside) {
  return "<" + kD + " calls>\n<" + kD + " invoke name=\"f\">\n" + inside + "</" + kD + " invoke>\n</" + kD +
         " calls>";
}

/// One parameter line, as spelled text; `string` is "true" or "false".
inline std::string parameter(const std::string& key, const std::string& string, const std::string& value) {
  return "<" + kD + " parameter name=\"" + key + "\" string=\"" + string + "\">" + value + "</" + kD +
         " parameter>\n";
}

inline ParserStart with_tools(ParserStage stage = ParserStage::answer) {
  ParserStart start;
  start.stage = stage;
  start.parse_tool_calls = true;
  return start;
}

}  // namespace thalweg::testing
