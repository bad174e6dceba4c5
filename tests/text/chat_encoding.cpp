// The prompt format, on conversations written out in code.
#include "text/chat_encoding.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "support/text_data.hpp"
#include "text/chat_support.hpp"

namespace thalweg::testing {
namespace {

using text::AssistantMessage;
using text::Content;
using text::Conversation;
using text::ParserStage;
using text::ResponseFormat;
using text::SystemMessage;
using text::ToolChoice;
using text::ToolMessage;
using text::UserMessage;

TEST(ChatEncoding, StartsWithTheEffortLineWhenThinking) {
  EXPECT_EQ(shown(chat({user("Hello")})), "{BOS}{S}" + T(75) + "{U}Hello{A}<think>");
}

TEST(ChatEncoding, CountsThirtyOneTokensForHelloAndFiveWithoutThinking) {
  EXPECT_EQ(ids_of(chat({user("Hello")})).size(), 31u);
  EXPECT_EQ(ids_of(chat_off({user("Hello")})).size(), 5u);
}

TEST(ChatEncoding, ClosesThinkingInTheHeaderWhenOff) {
  EXPECT_EQ(shown(chat_off({user("Hello")})), "{BOS}{U}Hello{A}</think>");
}

TEST(ChatEncoding, WritesASystemMessageFirst) {
  EXPECT_EQ(shown(chat_off({system("Be brief."), user("Hello")})), "{BOS}{S}Be brief.{U}Hello{A}</think>");
}

TEST(ChatEncoding, DropsOldReasoningWithoutTools) {
  EXPECT_EQ(shown(chat({system("S"), user("a"), assistant("b", "r"), user("c")})),
            "{BOS}{S}" + T(75) + "S{U}a{A}</think>b{EOS}{U}c{A}<think>");
}

TEST(ChatEncoding, MarksALaterSystemMessage) {
  EXPECT_EQ(shown(chat_off({user("a"), assistant("b"), system("D")})),
            "{BOS}{U}a{A}</think>b{EOS}{S}D{A}</think>");
}

TEST(ChatEncoding, InsertsASystemMessageForTools) {
  Conversation conversation = chat({user("go")});
  conversation.tools = {tool("f")};
  EXPECT_EQ(shown(conversation), "{BOS}{S}" + T(75) + "\n\n" + TOOLS(kSchemaF) + "{U}go{A}<think>");
}

TEST(ChatEncoding, KeepsReasoningAndShowsCallsWithTools) {
  AssistantMessage call = assistant_message("", "r");
  call.calls = {{"1", "f", R"({"x": "1", "n": 2})"}};
  Conversation conversation = chat({user("go"), call, ToolMessage{Content("ok"), "1"}});
  conversation.tools = {tool("f")};
  EXPECT_EQ(shown(conversation),
            "{BOS}{S}" + T(75) + "\n\n" + TOOLS(kSchemaF) +
                "{U}go{A}<think>r</think>\n\n<{D} calls>\n<{D} invoke name=\"f\">\n"
                "<{D} parameter name=\"x\" string=\"true\">1</{D} parameter>\n"
                "<{D} parameter name=\"n\" string=\"false\">2</{D} parameter>\n"
                "</{D} invoke>\n</{D} calls>{EOS}{U}<tool_result>ok</tool_result>{A}<think>");
}

TEST(ChatEncoding, OpensTheCallsBlockWhenACallIsRequired) {
  Conversation conversation = chat_off({user("q")});
  conversation.tools = {tool("f")};
  conversation.tool_choice = ToolChoice::required;
  EXPECT_EQ(shown(conversation), "{BOS}{S}\n\n" + TOOLS(kSchemaF) + "{U}q{A}</think>\n\n<{D} calls>\n");
  EXPECT_TRUE(parser_start(conversation).starts_in_tool_calls);
}

TEST(ChatEncoding, StatesTheResponseFormat) {
  Conversation conversation = chat_off({user("json please")});
  conversation.response_format.kind = ResponseFormat::Kind::json_object;
  EXPECT_EQ(shown(conversation),
            "{BOS}{S}\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n"
            "{\"type\": \"json_object\"}{U}json please{A}</think>");
  EXPECT_TRUE(parser_start(conversation).parse_json_output);
}

TEST(ChatEncoding, LeavesAPrefixOpen) {
  Conversation conversation = chat({user("Tell"), prefix("Once", "plan")});
  EXPECT_EQ(shown(conversation), "{BOS}{S}" + T(75) + "{U}Tell{A}<think>plan</think>Once");
  EXPECT_EQ(parser_start(conversation).stage, ParserStage::answer_continuation);
}

TEST(ChatEncoding, PutsImagesBetweenTexts) {
  Content content("a");
  content.parts.emplace_back(text::Image{text::Image::Kind::url, text::ImageDetail::high, "https://x/y.png"});
  content.parts.emplace_back(std::string("b"));
  const Conversation conversation = chat_off({UserMessage{content}});
  EXPECT_EQ(shown(conversation), "{BOS}{U}a\n\n<｜deepseek_image｜>\n\nb{A}</think>");
  const text::Prompt prompt = render(conversation);
  ASSERT_EQ(prompt.images.size(), 1u);
  EXPECT_EQ(prompt.images[0].url, "https://x/y.png");
}

TEST(ChatEncoding, ContinuesInsideReasoning) {
  Conversation conversation = chat({user("Tell"), prefix("", "plan")});
  EXPECT_EQ(shown(conversation), "{BOS}{S}" + T(75) + "{U}Tell{A}<think>plan");
  EXPECT_EQ(parser_start(conversation).stage, ParserStage::reasoning_continuation);
}

TEST(ChatEncoding, TreatsAnEmptyPrefixAsTheUsualHeader) {
  Conversation conversation = chat({user("Tell"), prefix("", "")});
  EXPECT_EQ(shown(conversation), "{BOS}{S}" + T(75) + "{U}Tell{A}<think>");
  EXPECT_EQ(parser_start(conversation).stage, ParserStage::reasoning);
}

TEST(ChatEncoding, DropsThePlanOfAPrefixThatIsTheFirstMessage) {
  EXPECT_EQ(shown(chat({prefix("Once", "plan")})), "{BOS}{S}" + T(75) + "{A}</think>Once");
}

TEST(ChatEncoding, ContinuesAnAnswerWithoutThinking) {
  Conversation conversation = chat_off({user("Tell"), prefix("Once", "plan")});
  EXPECT_EQ(shown(conversation), "{BOS}{U}Tell{A}</think>Once");
  EXPECT_EQ(parser_start(conversation).stage, ParserStage::answer);
}

TEST(ChatEncoding, HasNoEffortLineWithoutMessages) {
  EXPECT_EQ(shown(chat({})), "{BOS}{A}<think>");
  EXPECT_EQ(shown(chat_off({})), "{BOS}{A}</think>");
}

TEST(ChatEncoding, KeepsTheFirstOfNeighbouringReminders) {
  EXPECT_EQ(shown(chat_off({user("q"), text::ReminderMessage{"r1"}, text::ReminderMessage{"r2"}})),
            "{BOS}{U}q<｜latest_reminder｜>r1{A}</think>");
}

TEST(ChatEncoding, JoinsUsersAlsoWhenOneIsEmpty) {
  EXPECT_EQ(shown(chat_off({user("a"), user(""), user("b")})), "{BOS}{U}a\n\n\n\nb{A}</think>");
}

TEST(ChatEncoding, HeadsEachOfTwoAssistantMessages) {
  EXPECT_EQ(shown(chat_off({assistant("a"), assistant("b"), user("q")})),
            "{BOS}{A}</think>a{EOS}{A}</think>b{EOS}{U}q{A}</think>");
}

TEST(ChatEncoding, SortsResultsAroundOtherMessagesOfTheTurn) {
  AssistantMessage call = assistant_message("", "");
  call.calls = {{"1", "f", "{}"}, {"2", "f", "{}"}};
  const std::string found = shown(chat_off(
      {user("q"), call, ToolMessage{Content("two"), "2"}, user("aside"), ToolMessage{Content("one"), "1"}}));
  EXPECT_NE(found.find("{U}<tool_result>one</tool_result>\n\naside\n\n<tool_result>two</tool_result>{A}"),
            std::string::npos)
      << found;
}

TEST(ChatEncoding, WritesAnEmptyLineForACallWithoutArguments) {
  AssistantMessage call = assistant_message("", "");
  call.calls = {{"1", "now", "{}"}};
  const std::string found = shown(chat_off({user("q"), call}));
  EXPECT_NE(found.find("<{D} invoke name=\"now\">\n\n</{D} invoke>\n"), std::string::npos) << found;
}

TEST(ChatEncoding, KeepsTheFirstPlaceAndTheLastValueOfARepeatedArgument) {
  AssistantMessage call = assistant_message("", "");
  call.calls = {{"1", "f", R"({"a": 1, "b": 2, "a": 3})"}};
  const std::string found = shown(chat_off({user("q"), call}));
  EXPECT_NE(found.find("name=\"a\" string=\"false\">3</{D} parameter>\n<{D} parameter name=\"b\""),
            std::string::npos)
      << found;
}

TEST(ChatEncoding, BringsNewToolsInASystemMessage) {
  Conversation conversation = chat_off({user("q"), SystemMessage{Content("note"), {tool("late")}}});
  conversation.tools = {tool("f"), tool("late")};
  conversation.tools[1].deferred = true;
  EXPECT_EQ(shown(conversation),
            "{BOS}{S}\n\n" + TOOLS(kSchemaF) +
                "{U}q{S}note\n\n### Updated Tool Schemas\n\n"
                "{\"name\": \"late\", \"description\": \"\", \"parameters\": {}}{A}</think>");
}

TEST(ChatEncoding, LeavesNoTraceOfNewToolsWhenNoneMayBeUsed) {
  Conversation conversation = chat_off({user("q"), SystemMessage{Content(""), {tool("late")}}, user("r")});
  conversation.tools = {tool("f")};
  conversation.tool_choice = ToolChoice::none;
  EXPECT_EQ(shown(conversation), "{BOS}{U}q\n\nr{A}</think>");
}

TEST(ChatEncoding, ReplaysTheIdsThatTheModelProduced) {
  AssistantMessage answer = assistant_message("b", "");
  answer.replayed = text::ReplayedIds{false, {17, 4, 99}};
  const text::Prompt prompt = render(chat_off({user("a"), answer, user("c")}));
  const auto ids = encode(prompt, released_tokenizer(), specials());
  const std::vector<text::TokenId> expected{specials().end_think, 17, 4, 99, specials().eos};
  EXPECT_NE(std::search(ids.begin(), ids.end(), expected.begin(), expected.end()), ids.end());
}

TEST(ChatEncoding, DoesNotReplayReasoningThatMustBeDropped) {
  AssistantMessage answer = assistant_message("b", "r");
  answer.replayed = text::ReplayedIds{true, {17, 4, 99}};
  EXPECT_EQ(shown(chat({user("a"), answer, user("c")})),
            "{BOS}{S}" + T(75) + "{U}a{A}</think>b{EOS}{U}c{A}<think>");
}

TEST(ChatEncoding, RefusesTextThatIsNotUtf8) {
  EXPECT_THROW(ids_of(chat_off({user("\xff")})), InputError);
}

TEST(ChatEncoding, ShowsTheMarkupOfToolsAsTokens) {
  Conversation conversation = chat_off({user("q")});
  conversation.tools = {tool("f")};
  const auto ids = ids_of(conversation);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), specials().dsml), 9);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), specials().think), 2);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), specials().end_think), 3);  // one of them in the header
}

}  // namespace
}  // namespace thalweg::testing
