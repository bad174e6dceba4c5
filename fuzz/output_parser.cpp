// The output parser on arbitrary outputs. Byte 0 and 1 choose the start; each later byte is a piece of
// output: most stand for themselves, those that UTF-8 never uses for special tokens and for fragments of
// markup.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "app/model_option.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "text/output_parser.hpp"
#include "text/utf8.hpp"

namespace {

using namespace thalweg;
using text::OutputParser;
using text::ParseEvent;
using text::ParserStart;
using text::TokenId;

struct Vocabulary {
  text::Tokenizer tokenizer = text::Tokenizer::load(app::model_directory("") / "tokenizer.json");
  text::SpecialTokens specials = text::find_special_tokens(tokenizer);
};

const Vocabulary& vocabulary() {
  static const Vocabulary shared;
  return shared;
}

void require(bool holds) {
  if (!holds) std::abort();
}

struct Piece {
  TokenId special = -1;  // or ordinary text:
  std::string text;
};

ParserStart start_from(std::uint8_t flags, std::uint8_t stops) {
  static const std::vector<std::vector<std::string>> choices = {
      {}, {"STOP"}, {"\n"}, {"\n\n", "a"}, {"abc", "bc"}, {"</think>"}, {"[1", "\n```"}, {"\xC3\xA9", "<"}};
  ParserStart start;
  start.stage = static_cast<text::ParserStage>(flags & 3);
  start.parse_tool_calls = flags & 4;
  start.starts_in_tool_calls = flags & 8;
  start.parse_json_output = flags & 16;
  start.stop_sequences = choices[stops % choices.size()];
  return start;
}

std::vector<Piece> pieces_from(const std::uint8_t* data, std::size_t size) {
  const text::SpecialTokens& specials = vocabulary().specials;
  std::vector<Piece> pieces;
  const auto text = [&](std::string piece) { pieces.push_back({-1, std::move(piece)}); };
  for (std::size_t i = 0; i < size; ++i) {
    switch (data[i]) {
      case 0xF5:
        text("<");
        [[fallthrough]];
      case 0xF6:
        pieces.push_back({specials.dsml, {}});
        break;
      case 0xF7:
        text("</");
        pieces.push_back({specials.dsml, {}});
        break;
      case 0xF8:
        pieces.push_back({specials.end_think, {}});
        break;
      case 0xF9:
        pieces.push_back({specials.user, {}});
        break;
      case 0xFA:
        text("invoke name=\"f\">");
        break;
      case 0xFB:
        text("parameter name=\"");
        break;
      case 0xFC:
        text("true\">");
        break;
      case 0xFD:
        text("false\">");
        break;
      case 0xFE:
        text("```");
        break;
      default:
        text(std::string(1, static_cast<char>(data[i])));
    }
  }
  return pieces;
}

void feed(OutputParser& parser, const Piece& piece, std::vector<ParseEvent>& events) {
  if (piece.special >= 0) {
    parser.feed(piece.special, events);
  } else {
    parser.feed(std::string_view(piece.text), events);
  }
}

void check_output(const std::vector<ParseEvent>& events, bool closed) {
  text::MessageAccumulator accumulator;
  for (const ParseEvent& event : events) {
    require(text::find_ill_formed_utf8(event.text) == event.text.size());
    accumulator.add(event);
  }
  for (const text::ParsedCall& call : accumulator.finish(text::BackendFinish::stop).calls) {
    if (call.complete || closed) require(parse_json(call.arguments, "arguments").is_object());
  }
}

// Piece by piece, with every third piece first fed as a rejected draft and rolled back.
std::vector<ParseEvent> parse_with_rollback(OutputParser parser, const std::vector<Piece>& pieces) {
  std::vector<ParseEvent> events;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const OutputParser checkpoint = parser;
    std::vector<ParseEvent> dropped;
    for (std::size_t draft = i % 3; draft < 3; ++draft)
      feed(parser, pieces[(i + draft) % pieces.size()], dropped);
    parser = checkpoint;
    feed(parser, pieces[i], events);
  }
  parser.finish(events);
  return events;
}

std::vector<ParseEvent> parse_straight(OutputParser parser, const std::vector<Piece>& pieces) {
  std::vector<ParseEvent> events;
  Piece run;
  for (const Piece& piece : pieces) {
    run.text += piece.text;
    if (piece.special < 0) continue;
    feed(parser, run, events);
    run.text.clear();
    feed(parser, piece, events);
  }
  feed(parser, run, events);
  parser.finish(events);
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  ParserStart start = start_from(data[0], data[1]);
  if (data[0] & 32) start.cut_arguments = text::CutArguments::closed;
  const bool closed = start.cut_arguments == text::CutArguments::closed;
  const std::vector<Piece> pieces = pieces_from(data + 2, size - 2);
  const OutputParser parser(start, vocabulary().tokenizer, vocabulary().specials);
  const std::vector<ParseEvent> straight = parse_straight(parser, pieces);
  check_output(straight, closed);
  require(parse_with_rollback(parser, pieces) == straight);

  std::vector<Piece> spelled = pieces;
  for (Piece& piece : spelled) {
    if (piece.special >= 0) piece = {-1, std::string(vocabulary().tokenizer.token_bytes(piece.special))};
  }
  const OutputParser text_parser(start);
  const std::vector<ParseEvent> whole = parse_straight(text_parser, spelled);
  check_output(whole, closed);
  require(parse_with_rollback(text_parser, spelled) == whole);
  return 0;
}
