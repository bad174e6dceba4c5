// The parts of the output parser: marker matching, held text, escaping, the start as JSON, long inputs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "text/held_text.hpp"
#include "text/json_escape.hpp"
#include "text/json_value.hpp"
#include "text/output_parser_support.hpp"

namespace thalweg::testing {
namespace {

using text::HeldText;
using text::Marker;
using text::MarkerSet;

Marker marker(const std::string& text, bool swallows_newlines = false) {
  return {std::vector<text::Symbol>(text.begin(), text.end()), swallows_newlines};
}

/// Feeds `text`; returns what was released, then "|" and what is held, or "!N" where marker N completed.
std::string watch(const MarkerSet& set, const std::string& text) {
  MarkerSet::Position position;
  std::string out;
  for (const char& c : text) {
    const auto complete = set.advance(position, static_cast<unsigned char>(c), {&c, 1}, out);
    if (complete) out.append("!").append(std::to_string(*complete));
  }
  out += "|";
  set.append_held(position, out);
  return out;
}

TEST(MarkerSet, HoldsOnlyTheLongestTextThatCanStillMatch) {
  const MarkerSet set({marker("abcd"), marker("bcx")});
  EXPECT_EQ(watch(set, "zzab"), "zz|ab");
  EXPECT_EQ(watch(set, "abcx"), "a!1|");
  EXPECT_EQ(watch(set, "abcy"), "abcy|");
  EXPECT_EQ(watch(set, "ababc"), "ab|abc");
}

TEST(MarkerSet, FirstToCompleteWinsThenFirstInOrder) {
  EXPECT_EQ(watch(MarkerSet({marker("abcd"), marker("bc")}), "xabcd"), "xa!1d|");
  EXPECT_EQ(watch(MarkerSet({marker("bc"), marker("abc")}), "abc"), "a!0|");
  EXPECT_EQ(watch(MarkerSet({marker("abc"), marker("bc")}), "abc"), "!0|");
}

TEST(MarkerSet, SwallowsTheNewlinesDirectlyInFront) {
  const MarkerSet set({marker("<x>", true)});
  EXPECT_EQ(watch(set, "a\n\n<x>b"), "a!0b|");
  EXPECT_EQ(watch(set, "a\n \n<x"), "a\n |\n<x");
  EXPECT_EQ(watch(set, "a\n\n<y"), "a\n\n<y|");
  EXPECT_EQ(watch(set, "\n<\n<<x>"), "\n<\n<!0|");
  EXPECT_EQ(watch(set, "<\n\n<x>"), "<!0|");
}

TEST(MarkerSet, NewlinesThatAlsoBeginAnotherMarkerAreHeldOnce) {
  const MarkerSet set({marker("a\n\nb"), marker("<x>", true)});
  EXPECT_EQ(watch(set, "a\n\n"), "|a\n\n");
  EXPECT_EQ(watch(set, "a\n\n\n<"), "a|\n\n\n<");
  EXPECT_EQ(watch(set, "a\n\nb"), "!0|");
}

TEST(MarkerSet, OfNoMarkersHoldsNothing) {
  EXPECT_EQ(watch(MarkerSet({}), "a\n"), "a\n|");
}

TEST(HeldText, CopiesGrowIndependently) {
  HeldText first;
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    first.append(std::to_string(i));
    expected += std::to_string(i);
  }
  HeldText second = first;
  first.append("first");
  second.append(std::string(5000, 'x'));
  EXPECT_EQ(first.str(), expected + "first");
  EXPECT_EQ(second.str(), expected + std::string(5000, 'x'));
  first.clear();
  EXPECT_TRUE(first.empty());
  EXPECT_EQ(first.str(), "");
  EXPECT_EQ(second.str(), expected + std::string(5000, 'x'));
}

TEST(HeldText, LongTextsComeBackWhole) {
  HeldText text;
  std::string expected;
  for (int i = 0; expected.size() < 1000000; ++i) {
    const std::string piece(static_cast<std::size_t>(i % 3000), static_cast<char>('a' + i % 26));
    text.append(piece);
    expected += piece;
  }
  EXPECT_EQ(text.str(), expected);
}

TEST(JsonEscape, EscapesQuotesBackslashesAndControlsOnly) {
  EXPECT_EQ(text::json_quoted("a\"b\\c\n\r\t\b\f"), R"("a\"b\\c\n\r\t\b\f")");
  EXPECT_EQ(text::json_quoted(std::string("\0\x01\x1f\x7f", 4)), "\"\\u0000\\u0001\\u001f\x7f\"");
  EXPECT_EQ(text::json_quoted("é\u2028😀/"), "\"é\u2028😀/\"");
}

TEST(JsonValue, AcceptsWhatParseJsonAccepts) {
  for (const char* text : {"1", " [1, {\"a\": null}] ", "\"\\u00e9\"", "-0.5e3", "18446744073709551615"}) {
    EXPECT_TRUE(text::is_json_value(text, 10)) << text;
  }
  for (const char* text :
       {"", " ", "01", "[1", "1 2", "NaN", "'a'", "\"\\ud800\"", "\"\xFF\"", "1e999", "{\"a\" 1}"}) {
    EXPECT_FALSE(text::is_json_value(text, 10)) << text;
  }
  EXPECT_FALSE(text::is_json_value(std::string_view("[1]\0", 4), 10));
  EXPECT_TRUE(text::is_json_value("[[]]", 2));
  EXPECT_FALSE(text::is_json_value("[[]]", 1));
}

TEST(ParserStart, JsonFormReadsBackAsTheSame) {
  for (const ParserStage stage : {ParserStage::answer, ParserStage::reasoning,
                                  ParserStage::reasoning_continuation, ParserStage::answer_continuation}) {
    const ParserStart start{stage, true, false, true, {"a", "é"}};
    EXPECT_EQ(text::parser_start_from_json(to_json(start), "start"), start);
  }
  EXPECT_EQ(to_text(to_json(ParserStart{})),
            R"({"parse_tool_calls":false,"starts_in_tool_calls":false,"parse_json_output":false,)"
            R"("thinking_initial_stage":null,"stop_sequences":[]})");
}

TEST(ParserStart, MalformedJsonNamesTheMember) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "start: expected an object"},
      {R"({"stage": "Answer"})", "start.stage: expected null, \"ReasoningStart\""},
      {R"({"stage": 1})", "start.stage"},
      {R"({"parse_tool_calls": 1})", "start.parse_tool_calls: expected true or false, found number"},
      {R"({"starts_in_tool_calls": null})", "start.starts_in_tool_calls"},
      {R"({"parse_json_output": "yes"})", "start.parse_json_output"},
      {R"({"stop_sequences": "a"})", "start.stop_sequences: expected a list of strings, found string"},
      {R"({"stop_sequences": ["a", 1]})", "start.stop_sequences[1]: expected a string, found number"},
      {R"({"stop_sequences": ["a", ""]})", "start.stop_sequences[1]: expected at least one character"},
      {R"({"stop_sequences": [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]})", "start.stop_sequences[0]"},
      {R"({"stage": null, "tools": true})", "start.tools: unknown member"}};
  for (const auto& [json, message] : cases) {
    try {
      text::parser_start_from_json(parse_json(json, "test"), "start");
      ADD_FAILURE() << json;
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, message.size()), message);
    }
  }
}

TEST(ParserStart, TooManyOrIllFormedStopSequencesAreRefused) {
  ParserStart start;
  start.stop_sequences.assign(ParserStart::kMaxStopSequences, "a");
  EXPECT_NO_THROW(OutputParser{start});
  start.stop_sequences.emplace_back("b");
  EXPECT_THROW(OutputParser{start}, InputError);
  start.stop_sequences = {"\xFF"};
  EXPECT_THROW(OutputParser{start}, InputError);
}

TEST(MessageAccumulator, IsEmptyAgainAfterTheMessage) {
  MessageAccumulator accumulator;
  accumulator.add({Kind::content, 0, "a"});
  EXPECT_EQ(accumulator.finish(text::BackendFinish::stop).content, "a");
  EXPECT_EQ(accumulator.finish(text::BackendFinish::stop), ParsedMessage{});
}

TEST(LongOutputs, NewlineRunsHalfMarkersAndStopPrefixesComeOutWhole) {
  ParserStart start = with_tools();
  start.stage = ParserStage::answer_continuation;
  start.stop_sequences = {std::string(5000, '<') + "x", std::string(5000, '\n') + "x"};
  const std::vector<std::string> units = {"\n", "<", "<\n", "<" + kD.substr(0, 6), "</think"};
  for (const std::string& unit : units) {
    std::string text;
    while (text.size() < 300000) text += unit;
    EXPECT_EQ(parse_chunks(start, split_bytes(text)).message().content, text);
  }
}

TEST(LongOutputs, CheckpointsInsideALongRawValueStayCheap) {
  OutputParser parser(with_tools());
  std::vector<ParseEvent> events;
  parser.feed(std::string_view("<" + kD + " invoke name=\"f\"> parameter name=\"x\" string=\"false\">["),
              events);
  std::string value = "[";
  for (int i = 0; i < 200000; ++i) {
    const OutputParser checkpoint = parser;
    parser.feed(std::string_view("rejected"), events);
    parser = checkpoint;
    parser.feed(std::string_view("0, "), events);
    value += "0, ";
  }
  parser.feed(std::string_view("0]</" + kD + "</" + kD), events);
  Output output{events};
  ASSERT_EQ(output.message().calls.size(), 1u);
  EXPECT_EQ(output.message().calls[0].arguments, "{\"x\": " + value + "0]}");
}

}  // namespace
}  // namespace thalweg::testing
