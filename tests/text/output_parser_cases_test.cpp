// Cases from public reports (C: tool calls, D: streaming, F: stop sequences), named by their number, and the
// rules of docs/output_parsing.md.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "text/output_parser_support.hpp"

namespace thalweg::testing {
namespace {

using text::BackendFinish;
using text::CutArguments;
using text::FinishReason;

std::string arguments_of(const std::string& inside) {
  const ParsedMessage message = parse_text(with_tools(), one_call(inside)).message();
  return message.calls.size() == 1 && message.calls[0].complete ? message.calls[0].arguments
                                                                : "no complete call";
}

ParserStart with_stops(std::vector<std::string> stops, ParserStage stage = ParserStage::answer) {
  ParserStart start;
  start.stage = stage;
  start.stop_sequences = std::move(stops);
  return start;
}

TEST(ToolCallCases, C1ShellRedirectionStreamedByteByByte) {
  const std::string text = one_call(parameter("command", "true", "ls 2>&1"));
  const ParsedMessage message = parse_chunks(with_tools(), split_bytes(text)).message();
  ASSERT_EQ(message.calls.size(), 1u);
  EXPECT_EQ(message.calls[0].arguments, R"({"command": "ls 2>&1"})");
}

TEST(ToolCallCases, C2TypesFollowTheMark) {
  EXPECT_EQ(arguments_of(parameter("x", "false", "true")), R"({"x": true})");
  EXPECT_EQ(arguments_of(parameter("x", "false", "3")), R"({"x": 3})");
  EXPECT_EQ(arguments_of(parameter("x", "false", R"({"a":[1,2]})")), R"({"x": {"a":[1,2]}})");
  EXPECT_EQ(arguments_of(parameter("x", "true", "true")), R"({"x": "true"})");
}

TEST(ToolCallCases, C4CallInsideUnclosedThinking) {
  const std::string text = "I should look.\n\n" + one_call(parameter("x", "true", "1"));
  const ParsedMessage message = parse_text(with_tools(ParserStage::reasoning), text).message();
  EXPECT_EQ(message.reasoning, "I should look.");
  EXPECT_EQ(message.content, "");
  ASSERT_EQ(message.calls.size(), 1u);
  EXPECT_EQ(message.finish_reason, FinishReason::tool_calls);
}

TEST(ToolCallCases, C5LengthCutInsideAParameterIsMarkedIncomplete) {
  const std::string whole = "hi\n\n" + one_call(parameter("x", "true", "abc"));
  const std::string in_string = whole.substr(0, whole.find("abc") + 3);
  const ParsedMessage cut = parse_text(with_tools(), in_string + "</").message(BackendFinish::length);
  EXPECT_EQ(cut.content, "hi");
  EXPECT_EQ(cut.finish_reason, FinishReason::length);
  ASSERT_EQ(cut.calls.size(), 1u);
  EXPECT_EQ(cut.calls[0].arguments, R"({"x": "abc</)");
  EXPECT_FALSE(cut.calls[0].complete);
  const std::string in_type = whole.substr(0, whole.find(" string="));
  EXPECT_EQ(parse_text(with_tools(), in_type).message().calls.at(0).arguments, R"({"x": )");
}

TEST(ToolCallCases, C5CutArgumentsAreClosedIfAskedFor) {
  ParserStart start = with_tools();
  start.cut_arguments = CutArguments::closed;
  const std::string whole = one_call(parameter("a\n", "true", "é\"") + parameter("b", "false", " [1, 2] "));
  const std::size_t first = whole.find("invoke name=\"f\"") + std::string("invoke name=\"f\"").size();
  for (std::size_t cut = first; cut <= whole.size(); ++cut) {
    const ParsedMessage message = parse_text(start, whole.substr(0, cut)).message(BackendFinish::length);
    ASSERT_EQ(message.calls.size(), 1u);
    EXPECT_TRUE(parse_json(message.calls[0].arguments, "arguments").is_object()) << cut;
  }
  const auto cut_behind = [&](const std::string& part) {
    return parse_text(start, whole.substr(0, whole.find(part) + part.size())).message().calls.at(0).arguments;
  };
  EXPECT_EQ(cut_behind("invoke name=\"f\">"), "{}");
  EXPECT_EQ(cut_behind("parameter name=\"a"), R"({"a": null})");
  EXPECT_EQ(cut_behind("string=\"tr"), R"({"a\n": null})");
  EXPECT_EQ(cut_behind("é\""), R"({"a\n": "é\""})");
  EXPECT_EQ(cut_behind("false\">"), R"({"a\n": "é\"", "b": null})");
  EXPECT_EQ(cut_behind("[1, 2"), R"({"a\n": "é\"", "b": " [1, 2"})");
  EXPECT_EQ(cut_behind("[1, 2]"), R"({"a\n": "é\"", "b":  [1, 2]})");
}

TEST(ToolCallCases, C6TwoCallsNoArgumentsAndTextBehindTheBlock) {
  const std::string two = "<" + kD + " calls>\n<" + kD + " invoke name=\"a\">\n\n</" + kD + " invoke>\n<" +
                          kD + " invoke name=\"b\">\n\n</" + kD + " invoke>\n</" + kD + " calls>\nand more";
  const Output output = parse_text(with_tools(), two);
  const std::vector<ParseEvent> expected = {{Kind::call, 0, "a"},       {Kind::arguments, 0, "{}"},
                                            {Kind::call_end, 0, ""},    {Kind::call, 1, "b"},
                                            {Kind::arguments, 1, "{}"}, {Kind::call_end, 1, ""}};
  EXPECT_EQ(output.events(), expected);
}

TEST(ToolCallCases, C7TagsOfV4AreParsedAndAsciiBarsAreText) {
  const std::string v4 = "<" + kD + "tool_calls>\n<" + kD + "invoke name=\"f\">\n<" + kD +
                         "parameter name=\"x\" string=\"false\">1</" + kD + "parameter>\n</" + kD +
                         "invoke>\n</" + kD + "tool_calls>";
  EXPECT_EQ(parse_text(with_tools(), v4).message().calls.at(0).arguments, R"({"x": 1})");
  const std::string ascii = "<|DSML| calls>\n<|DSML| invoke name=\"f\">\n</|DSML| invoke>\n</|DSML| calls>";
  EXPECT_EQ(parse_text(with_tools(), ascii).message().content, ascii);
}

TEST(ToolCallCases, C8AParameterNamedArgumentsStaysAsItIs) {
  EXPECT_EQ(arguments_of(parameter("arguments", "true", "-l -a")), R"({"arguments": "-l -a"})");
  EXPECT_EQ(arguments_of(parameter("arguments", "false", R"({"city": "Paris"})")),
            R"({"arguments": {"city": "Paris"}})");
}

TEST(ToolCallCases, C10TheMarkDecidesBetweenNullNumberAndString) {
  EXPECT_EQ(arguments_of(parameter("n", "false", "null")), R"({"n": null})");
  EXPECT_EQ(arguments_of(parameter("n", "false", "3")), R"({"n": 3})");
  EXPECT_EQ(arguments_of(parameter("n", "true", "3")), R"({"n": "3"})");
  EXPECT_EQ(arguments_of(parameter("n", "false", "\"3\"")), R"({"n": "3"})");
}

TEST(ToolCallRules, RawValuesThatAreNotJsonBecomeStrings) {
  const auto value = [](const std::string& raw) { return arguments_of(parameter("x", "false", raw)); };
  EXPECT_EQ(value("2024-01-01"), R"({"x": "2024-01-01"})");
  EXPECT_EQ(value("{'a': True}"), R"({"x": "{'a': True}"})");
  EXPECT_EQ(value("hello \"you\"\n"), R"({"x": "hello \"you\"\n"})");
  EXPECT_EQ(value("[1, 2"), R"({"x": "[1, 2"})");
  EXPECT_EQ(value("1}, {"), R"({"x": "1}, {"})");
  EXPECT_EQ(value(""), R"({"x": ""})");
  EXPECT_EQ(value("NaN"), R"({"x": "NaN"})");
  EXPECT_EQ(value("1e999"), R"({"x": "1e999"})");
  EXPECT_EQ(value(R"("\ud800")"), R"({"x": "\"\\ud800\""})");
  EXPECT_EQ(value(std::string("[1]\0[", 5)), R"({"x": "[1]\u0000["})");
  EXPECT_EQ(value("\n[1,\n 2]\n"), "{\"x\": \n[1,\n 2]\n}");
}

TEST(ToolCallRules, ArgumentsNestedToTheLimitOfTheReaderStayJson) {
  const std::size_t limit = JsonLimits{}.depth;
  for (const std::size_t depth : {limit - 1, limit, limit + 1}) {
    const std::string nested = std::string(depth, '[') + std::string(depth, ']');
    const Json arguments = parse_json(arguments_of(parameter("x", "false", nested)), "arguments");
    EXPECT_EQ(arguments["x"].is_array(), depth < limit);
  }
}

TEST(ToolCallRules, BareOpeningBracketAndMarkOpensTheBlockAndDropsWhatIsNoCall) {
  const ParsedMessage message = parse_text(with_tools(), "a<" + kD + "anything at all").message();
  EXPECT_EQ(message.content, "a");
  EXPECT_TRUE(message.calls.empty());
  EXPECT_EQ(message.finish_reason, FinishReason::stop);
}

TEST(ToolCallRules, SpacesInFrontOfMarkupStayAndNewlinesGo) {
  EXPECT_EQ(parse_text(with_tools(), "a \n \n\n<" + kD).message().content, "a \n ");
  EXPECT_EQ(parse_text(with_tools(ParserStage::reasoning), "a \n \n\n</think>b").message().reasoning,
            "a \n ");
}

TEST(ToolCallRules, NewlinesBehindAHalfMarkerStillBelongToTheBlock) {
  EXPECT_EQ(parse_text(with_tools(), "a<\n\n<" + kD + " calls>").message().content, "a<");
  EXPECT_EQ(parse_text(with_tools(), "a<\n\nb").message().content, "a<\n\nb");
}

TEST(ToolCallRules, AStopAfterACallBeganIsToolCallsAndLengthWins) {
  const std::string begun = "<" + kD + " invoke name=\"f\"";
  EXPECT_EQ(parse_text(with_tools(), begun).message().finish_reason, FinishReason::tool_calls);
  const Output whole = parse_text(with_tools(), one_call(""));
  EXPECT_EQ(whole.message(BackendFinish::length).finish_reason, FinishReason::length);
  EXPECT_EQ(whole.message(BackendFinish::content_filter).finish_reason, FinishReason::content_filter);
  EXPECT_EQ(whole.message(BackendFinish::insufficient_system_resource).finish_reason,
            FinishReason::insufficient_system_resource);
}

TEST(StreamingCases, D1CharactersOverTokenBordersComeWhole) {
  const std::string text = "😀 ďábelské 社区 👩‍👩‍👧";
  const Vocabulary& mini = mini_vocabulary();
  const Output by_token = parse_ids({}, mini.tokenizer, mini.specials, mini.tokenizer.encode_plain(text));
  EXPECT_TRUE(by_token.whole_characters());
  EXPECT_EQ(by_token.message().content, text);
  const Output by_byte = parse_chunks({}, split_bytes(text));
  EXPECT_TRUE(by_byte.whole_characters());
  EXPECT_EQ(by_byte.message().content, text);
  for (const ParseEvent& piece : by_byte.pieces) EXPECT_EQ(piece.text.find("\uFFFD"), std::string::npos);
}

TEST(StreamingCases, D2HalfACharacterAtTheEndIsDroppedHoweverItCame) {
  EXPECT_EQ(parse_text({}, "ok \xF0\x9F\x98").message().content, "ok ");
  EXPECT_EQ(parse_chunks({}, split_bytes("ok \xF0\x9F\x98")).message().content, "ok ");
}

TEST(StreamingCases, IllFormedBytesBecomeReplacementCharacters) {
  EXPECT_EQ(parse_text({}, "a\xFF\xE2\x82z").message().content, "a\uFFFD\uFFFDz");
  EXPECT_EQ(parse_chunks({}, split_bytes("a\xFF\xE2\x82z")).message().content, "a\uFFFD\uFFFDz");
  const Vocabulary& mini = mini_vocabulary();
  OutputParser parser({}, mini.tokenizer, mini.specials);
  std::vector<ParseEvent> events;
  parser.feed(std::string_view("\xE2\x82"), events);
  parser.feed(mini.specials.end_think, events);
  parser.feed(std::string_view("z"), events);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].text, "\uFFFDz");
}

TEST(StreamingCases, D3HeldTextIsDeliveredAtTheEnd) {
  EXPECT_EQ(parse_text(with_tools(), "2 <").message().content, "2 <");
  EXPECT_EQ(parse_text(with_tools(), "2 <\n\n").message().content, "2 <\n\n");
}

TEST(StreamingCases, D4AnUnfinishedEndTagIsText) {
  EXPECT_EQ(parse_text({}, "done</think").message().content, "done</think");
}

TEST(StreamingCases, D5ASecondEndTagIsDropped) {
  ParserStart start;
  start.stage = ParserStage::reasoning;
  const ParsedMessage message = parse_text(start, "a</think>b</think>c").message();
  EXPECT_EQ(message.reasoning, "a");
  EXPECT_EQ(message.content, "bc");
}

TEST(StreamingCases, D6TextIsHeldOnlyWhileItCanBeginAStopSequence) {
  OutputParser parser(with_stops({"STOP"}));
  std::vector<ParseEvent> events;
  parser.feed(std::string_view("one ST"), events);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].text, "one ");
  parser.feed(std::string_view("O"), events);
  EXPECT_EQ(events[0].text, "one ");
  parser.feed(std::string_view("x"), events);
  EXPECT_EQ(events[0].text, "one STOx");
  for (const ParseEvent& piece : parse_chunks(with_stops({"STOP"}), split_bytes("one STOx")).pieces) {
    EXPECT_FALSE(piece.text.empty());
  }
}

TEST(StopSequenceCases, F4StopTextInsideReasoningIsReasoning) {
  const Output output =
      parse_text(with_stops({"STOP"}, ParserStage::reasoning), "think STOP more</think>answer STOP rest");
  const ParsedMessage message = output.message();
  EXPECT_EQ(message.reasoning, "think STOP more");
  EXPECT_EQ(message.content, "answer ");
  EXPECT_EQ(message.stop_sequence, "STOP");
  EXPECT_EQ(message.finish_reason, FinishReason::stop);
}

TEST(StopSequenceRules, AStopSequenceWinsOverTheTokenLimit) {
  EXPECT_EQ(parse_text(with_stops({"b"}), "ab").message(BackendFinish::length).finish_reason,
            FinishReason::stop);
}

TEST(StopSequenceRules, NothingIsGivenOutBehindAStopSequence) {
  OutputParser parser(with_stops({"b"}));
  std::vector<ParseEvent> events;
  parser.feed(std::string_view("abc"), events);
  EXPECT_TRUE(parser.stopped());
  EXPECT_EQ(parser.section(), OutputParser::Section::done);
  parser.feed(std::string_view("def"), events);
  parser.finish(events);
  const std::vector<ParseEvent> expected = {{Kind::content, 0, "a"}, {Kind::stop, 0, "b"}};
  EXPECT_EQ(events, expected);
}

TEST(StopSequenceRules, ANewlineStopSequenceAlsoMatchesLeadingNewlines) {
  EXPECT_EQ(parse_text(with_stops({"\n"}), "\nabc").message().stop_sequence, "\n");
  EXPECT_EQ(parse_text(with_stops({"\n\n"}), "\n\nabc").message().content, "abc");
}

TEST(StopSequenceRules, AStopSequenceDoesNotMatchAcrossADroppedTag) {
  EXPECT_EQ(parse_text(with_stops({"STOP"}), "ST</think>OP").message().content, "STOP");
}

TEST(JsonModeRules, TextAroundTheJsonIsOneBlankAndAllOfItIsParseable) {
  ParserStart start;
  start.parse_json_output = true;
  const std::string text = "Sure! Here:\n```json\n{\"a\": [1]}\n```\nThat is all.";
  EXPECT_EQ(parse_text(start, text).message().content, " {\"a\": [1]} ");
  EXPECT_EQ(parse_chunks(start, split_bytes(text)).message().content, " {\"a\": [1]} ");
  EXPECT_EQ(parse_text(start, "no json").message().content, " ");
  EXPECT_EQ(parse_text(start, "```\n[1]\n```").message().content, "[1]");
}

TEST(JsonModeRules, StopSequencesAreLookedForBehindTheFirstBracketOnly) {
  ParserStart start = with_stops({"[", "x"});
  start.parse_json_output = true;
  EXPECT_EQ(parse_text(start, "x[1").message().content, " [1");
  EXPECT_EQ(parse_text(start, "x[1, [2").message().content, " [1, ");
}

TEST(JsonModeRules, ABlockIsReadBeforeAndBehindTheJsonAndIsContentInside) {
  ParserStart start = with_tools();
  start.parse_json_output = true;
  EXPECT_EQ(parse_text(start, one_call("")).message().calls.size(), 1u);
  EXPECT_EQ(parse_text(start, "```\n[]\n```\n\n" + one_call("")).message().calls.size(), 1u);
  EXPECT_EQ(parse_text(start, "[]" + one_call("")).message().calls.size(), 0u);
}

TEST(ParserTokens, SpecialTokensInTextOfAnyKindShowTheirSpelling) {
  const Vocabulary& mini = mini_vocabulary();
  const std::vector<text::TokenId> ids = {mini.specials.user, mini.specials.dsml, mini.specials.think};
  EXPECT_EQ(parse_ids(with_tools(), mini.tokenizer, mini.specials, ids).message().content,
            "<｜User｜>" + kD + "<think>");
}

TEST(ParserTokens, IdsOutsideTheVocabularyAddNothing) {
  const Vocabulary& mini = mini_vocabulary();
  const std::vector<text::TokenId> ids = {-1, INT32_MAX, INT32_MIN, mini.tokenizer.vocab_size()};
  EXPECT_TRUE(parse_ids(with_tools(), mini.tokenizer, mini.specials, ids).pieces.empty());
}

TEST(ParserTokens, SectionFollowsTheOutput) {
  using Section = OutputParser::Section;
  OutputParser parser(with_tools(ParserStage::reasoning));
  std::vector<ParseEvent> events;
  const auto section_behind = [&](const std::string& text) {
    parser.feed(std::string_view(text), events);
    return parser.section();
  };
  EXPECT_EQ(section_behind("a"), Section::reasoning);
  EXPECT_EQ(section_behind("</think>"), Section::answer);
  EXPECT_EQ(section_behind("b<" + kD), Section::calls);
  EXPECT_EQ(section_behind(" calls>" + one_call("")), Section::done);
}

}  // namespace
}  // namespace thalweg::testing
