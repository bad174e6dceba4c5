// Random adversarial outputs: the parser against a plain reference, and what must hold whatever the model
// writes.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "text/output_parser_reference.hpp"
#include "text/output_parser_support.hpp"

namespace thalweg::testing {
namespace {

using text::TokenId;
using Random = std::mt19937;

std::size_t below(Random& random, std::size_t bound) {
  return random() % bound;
}
bool chance(Random& random, int percent) {
  return below(random, 100) < static_cast<std::size_t>(percent);
}

template <typename T>
const T& pick(Random& random, const std::vector<T>& choices) {
  return choices[below(random, choices.size())];
}

ParserStart random_start(Random& random) {
  static const std::vector<std::vector<std::string>> stops = {{},
                                                              {},
                                                              {},
                                                              {"STOP"},
                                                              {"\n"},
                                                              {"\n\n"},
                                                              {"abc", "bc"},
                                                              {"</think>"},
                                                              {"\nSTOP", "a"},
                                                              {"[1", "\n```"},
                                                              {"é", "<"}};
  ParserStart start;
  start.stage = static_cast<ParserStage>(below(random, 4));
  start.parse_tool_calls = chance(random, 75);
  start.starts_in_tool_calls = chance(random, 10);
  start.parse_json_output = chance(random, 20);
  start.stop_sequences = pick(random, stops);
  return start;
}

// Ordinary text that markers are made of or nearly look like. None of it spells a special token.
const std::vector<std::string>& ordinary_pieces() {
  static const std::vector<std::string> pieces = {"<",
                                                  "</",
                                                  "/",
                                                  ">",
                                                  "\n",
                                                  "\n\n",
                                                  " ",
                                                  "a",
                                                  "bc",
                                                  "abc",
                                                  "é",
                                                  "😀",
                                                  "社区",
                                                  "STOP",
                                                  "ST",
                                                  "OP",
                                                  "\"",
                                                  "\\",
                                                  "\t",
                                                  "invoke name=\"",
                                                  "invoke name=\"f\">\n",
                                                  " invoke>\n",
                                                  " calls>\n",
                                                  " calls>",
                                                  "tool_calls>",
                                                  "parameter name=\"",
                                                  " parameter name=\"x\" string=\"true\">",
                                                  " parameter name=\"y\" string=\"false\">",
                                                  " parameter>\n",
                                                  "true\">",
                                                  "false\">",
                                                  "1",
                                                  "[1, 2]",
                                                  "{\"a\": 1}",
                                                  "{'a': 1}",
                                                  "null",
                                                  "```json\n",
                                                  "```\n",
                                                  "\n```",
                                                  "{",
                                                  "[",
                                                  "}",
                                                  "</thi",
                                                  "<think",
                                                  "\x01",
                                                  "\xFF",
                                                  "\xE2\x82",
                                                  "\xF0\x9F",
                                                  "\x80"};
  return pieces;
}

const std::vector<std::string>& spelled_markup() {
  static const std::vector<std::string> pieces = {
      "</think>",           "<think>", kD, "<" + kD, "</" + kD, "<｜User｜>", "｜DS", "<" + kD + " calls>\n",
      "</" + kD + " calls>"};
  return pieces;
}

/// One random output: pieces of ordinary text and special tokens, in order.
struct Piece {
  TokenId special = -1;  ///< or ordinary text:
  std::string text;
};

std::vector<Piece> random_pieces(Random& random, bool with_spelled_markup) {
  const text::SpecialTokens& specials = mini_vocabulary().specials;
  const std::vector<TokenId> ids = {specials.dsml,      specials.dsml,  specials.dsml, specials.end_think,
                                    specials.end_think, specials.think, specials.user, specials.eos};
  std::vector<Piece> pieces;
  const auto text = [&](const char* piece) { pieces.push_back({-1, piece}); };
  const auto dsml = [&] { pieces.push_back({specials.dsml, {}}); };
  if (chance(random, 40)) {  // deep states are rare in pure noise
    text("<");
    dsml();
    text(" calls>\n<");
    dsml();
    text(" invoke name=\"f\">\n");
  }
  for (std::size_t left = 1 + below(random, 24); left > 0; --left) {
    if (chance(random, 12)) {
      text("</");
      dsml();
    } else if (chance(random, 12)) {
      text("<");
      dsml();
    } else if (chance(random, 20)) {
      pieces.push_back({pick(random, ids), {}});
    } else if (with_spelled_markup && chance(random, 20)) {
      pieces.push_back({-1, pick(random, spelled_markup())});
    } else {
      pieces.push_back({-1, pick(random, ordinary_pieces())});
    }
  }
  return pieces;
}

/// Feeds the pieces as special tokens and ordinary text cut at random; drafts are tried and rolled back on
/// the way.
Output parse_pieces(const ParserStart& start, const std::vector<Piece>& pieces, Random& random,
                    bool roll_back) {
  const Vocabulary& mini = mini_vocabulary();
  OutputParser parser(start, mini.tokenizer, mini.specials);
  Output output;
  std::vector<ParseEvent> events;
  const auto try_draft = [&] {
    const OutputParser checkpoint = parser;
    std::vector<ParseEvent> dropped;
    for (const Piece& piece : random_pieces(random, true)) {
      piece.special < 0 ? parser.feed(std::string_view(piece.text), dropped)
                        : parser.feed(piece.special, dropped);
    }
    if (chance(random, 20)) parser.finish(dropped);
    parser = checkpoint;
  };
  for (const Piece& piece : pieces) {
    if (roll_back && chance(random, 30)) try_draft();
    if (piece.special >= 0) {
      parser.feed(piece.special, events);
      take(output, events);
      continue;
    }
    for (std::size_t at = 0; at < piece.text.size();) {
      const std::size_t length = 1 + below(random, 6);
      parser.feed(std::string_view(piece.text).substr(at, length), events);
      take(output, events);
      at += length;
    }
  }
  parser.finish(events);
  take(output, events);
  return output;
}

/// The text as the model's output decodes: ill-formed parts replaced, an unfinished one at the very end
/// dropped.
std::string decoded(std::string bytes, bool at_end) {
  for (std::size_t tail = 1; at_end && tail <= 3 && tail <= bytes.size(); ++tail) {
    const std::string_view rest = std::string_view(bytes).substr(bytes.size() - tail);
    const text::Utf8Unit unit = text::read_utf8(rest);
    if (unit.state == text::Utf8State::unfinished && unit.length == tail) {
      bytes.resize(bytes.size() - tail);
      break;
    }
  }
  return text::replace_ill_formed_utf8(bytes);
}

std::vector<ParseEvent> reference_events(const ParserStart& start, const std::vector<Piece>& pieces) {
  const Vocabulary& mini = mini_vocabulary();
  constexpr char16_t kFirstSpecial = 0x200;
  Symbols symbols;
  std::string run;
  const auto end_run = [&](bool at_end) {
    for (const char c : decoded(std::exchange(run, {}), at_end)) symbols += static_cast<unsigned char>(c);
  };
  const auto symbol_of = [](TokenId id) { return static_cast<char16_t>(kFirstSpecial + id); };
  for (const Piece& piece : pieces) {
    run += piece.text;
    if (piece.special < 0) continue;
    end_run(false);
    symbols += symbol_of(piece.special);
  }
  end_run(true);
  const Speller speller = [&](char16_t symbol) {
    if (symbol < 256) return std::string(1, static_cast<char>(symbol));
    return std::string(mini.tokenizer.token_bytes(symbol - kFirstSpecial));
  };
  ReferenceParser reference(start, Symbols(1, symbol_of(mini.specials.end_think)),
                            Symbols(1, symbol_of(mini.specials.dsml)), speller);
  return reference.parse(symbols);
}

std::string show(const ParserStart& start, const std::vector<Piece>& pieces) {
  std::string text = to_text(to_json(start)) + "\n";
  for (const Piece& piece : pieces) {
    text += piece.special < 0 ? to_text(Json(piece.text)) : "#" + std::to_string(piece.special);
    text += " ";
  }
  return text;
}

TEST(OutputParserProperty, TwentyThousandRandomOutputsEqualTheReference) {
  Random random(11);
  for (int round = 0; round < 20000; ++round) {
    const ParserStart start = random_start(random);
    const std::vector<Piece> pieces = random_pieces(random, chance(random, 50));
    const Output output = parse_pieces(start, pieces, random, false);
    ASSERT_TRUE(output.whole_characters()) << show(start, pieces);
    ASSERT_EQ(output.events(), reference_events(start, pieces)) << show(start, pieces);
  }
}

TEST(OutputParserProperty, RollbackEqualsStraight) {
  Random random(12);
  for (int round = 0; round < 5000; ++round) {
    const ParserStart start = random_start(random);
    const std::vector<Piece> pieces = random_pieces(random, true);
    ASSERT_EQ(parse_pieces(start, pieces, random, true).events(), reference_events(start, pieces))
        << show(start, pieces);
  }
}

TEST(OutputParserProperty, SpelledOutputsEqualTheReferenceAtEveryCut) {
  Random random(13);
  const auto bytes = [](std::string_view text) {
    Symbols symbols;
    for (const char c : text) symbols += static_cast<unsigned char>(c);
    return symbols;
  };
  const Speller speller = [](char16_t symbol) { return std::string(1, static_cast<char>(symbol)); };
  for (int round = 0; round < 3000; ++round) {
    const ParserStart start = random_start(random);
    std::string text;
    for (const Piece& piece : random_pieces(random, true)) {
      text += piece.special < 0 ? piece.text : mini_vocabulary().tokenizer.token_bytes(piece.special);
    }
    ReferenceParser reference(start, bytes("</think>"), bytes(kD), speller);
    const std::vector<ParseEvent> expected = reference.parse(bytes(decoded(text, true)));
    ASSERT_EQ(parse_text(start, text).events(), expected) << text;
    ASSERT_EQ(parse_chunks(start, split_bytes(text)).events(), expected) << text;
    const std::size_t cut = below(random, text.size() + 1);
    ASSERT_EQ(parse_chunks(start, {text.substr(0, cut), text.substr(cut)}).events(), expected) << text;
  }
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// "<" directly in front of a real </think> may stay text and meet a later ｜DSML｜, which then is no markup
// either.
bool splits_an_opening(const std::vector<Piece>& pieces) {
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i].special == mini_vocabulary().specials.end_think && pieces[i - 1].text.ends_with("<"))
      return true;
  }
  return false;
}

void expect_no_leak(const ParserStart& start, const ParsedMessage& message) {
  const std::string reasoning = message.reasoning.value_or("");
  EXPECT_FALSE(holds(reasoning, "</think>"));
  EXPECT_FALSE(start.parse_tool_calls && holds(reasoning, "<" + kD));
  if (!start.parse_json_output) {  // in JSON mode everything behind the first bracket is content
    EXPECT_FALSE(holds(message.content, "</think>"));
    EXPECT_FALSE(start.parse_tool_calls && holds(message.content, "<" + kD));
  }
  for (const text::ParsedCall& call : message.calls) {
    if (!call.complete) continue;
    const Json arguments = parse_json(call.arguments, "arguments");
    ASSERT_TRUE(arguments.is_object());
    for (const Json& value : arguments) EXPECT_FALSE(holds(to_text(value), "</" + kD));
  }
}

TEST(OutputParserProperty, NoMarkupOfSpecialTokensLeaksAndCompleteCallsAreJson) {
  Random random(14);
  std::size_t complete = 0;
  for (int round = 0; round < 20000; ++round) {
    const ParserStart start = random_start(random);
    const std::vector<Piece> pieces = random_pieces(random, false);
    if (splits_an_opening(pieces)) continue;
    const ParsedMessage message = parse_pieces(start, pieces, random, false).message();
    expect_no_leak(start, message);
    ASSERT_FALSE(HasFailure()) << show(start, pieces);
    for (const text::ParsedCall& call : message.calls) complete += call.complete;
  }
  EXPECT_GT(complete, 1000u);
}

TEST(OutputParserProperty, ClosedArgumentsAreJsonWhateverWasCut) {
  Random random(15);
  for (int round = 0; round < 5000; ++round) {
    ParserStart start = random_start(random);
    start.cut_arguments = text::CutArguments::closed;
    const std::vector<Piece> pieces = random_pieces(random, true);
    for (const text::ParsedCall& call : parse_pieces(start, pieces, random, false).message().calls) {
      ASSERT_TRUE(parse_json(call.arguments, "arguments").is_object()) << show(start, pieces);
    }
  }
}

}  // namespace
}  // namespace thalweg::testing
