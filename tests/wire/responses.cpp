// What Responses requests may say beyond the golden cases.
#include "wire/responses.hpp"
#include "wire/support.hpp"

namespace thalweg::testing {
namespace {

using Strings = std::vector<std::string>;

std::string body(const std::string& rest) {
  return R"({"model": "DeepSeek-V4.1-Flash", )" + rest + "}";
}

// With thinking off, which makes prompts short.
std::string prompt(const std::string& rest) {
  std::string found = prompt_of("responses", body(rest + R"(, "reasoning": {"effort": "none"})"));
  return found.substr(found.find("｜>") + std::string("｜>").size());  // without BOS
}

TEST(Responses, AStringIsAUserMessage) {
  EXPECT_EQ(prompt(R"("input": "q")"), "<｜User｜>q<｜Assistant｜></think>");
}

TEST(Responses, InstructionsAloneAreEnough) {
  EXPECT_EQ(prompt(R"("instructions": "I")"), "<｜System｜>I<｜Assistant｜></think>");
  EXPECT_EQ(refusal_of("responses", body(R"("instructions": "")")).message,
            "Either input or instructions must be provided");
}

TEST(Responses, JoinsNeighbouringAssistantMessages) {
  EXPECT_EQ(prompt(R"("input": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b", "annotations": []},
      {"type": "output_text", "text": "c"}]}])"),
            "<｜User｜>q<｜Assistant｜></think>a\n\nb\n\nc<｜end▁of▁sentence｜><｜Assistant｜></think>");
}

TEST(Responses, JoinsReasoningItemsInFrontOfAnAssistantMessage) {
  const auto request = read("responses", body(R"("input": [
      {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "r1"},
                                                                     {"type": "reasoning_text", "text": "r2"}]},
      {"type": "reasoning", "summary": [], "encrypted_content": "x"},
      {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "r3"}]},
      {"role": "assistant", "content": "a"}])"));
  ASSERT_EQ(request.conversation.messages.size(), 1u);
  EXPECT_EQ(std::get<text::AssistantMessage>(request.conversation.messages[0]).reasoning, "r1\nr2\nr3");
}

TEST(Responses, SortsTheCallsOfAGroupById) {
  const std::string found = prompt(R"("input": [
      {"type": "function_call", "call_id": "b", "name": "second", "arguments": "{}"},
      {"type": "function_call", "call_id": "a", "name": "first", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "b", "output": "2"},
      {"type": "function_call_output", "call_id": "a", "output": "1"}])");
  EXPECT_LT(found.find("\"first\""), found.find("\"second\""));
  EXPECT_NE(found.find("<tool_result>1</tool_result>\n\n<tool_result>2</tool_result>"), std::string::npos);
}

TEST(Responses, CallsThatComeBetweenOutputsBelongToOneGroup) {
  const auto request = read("responses", body(R"("input": [
      {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
      {"type": "function_call", "call_id": "2", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "1", "output": "x"},
      {"type": "function_call", "call_id": "3", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "2", "output": "x"},
      {"type": "function_call_output", "call_id": "3", "output": "x"},
      {"type": "function_call", "call_id": "4", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "4", "output": "x"}])"));
  const auto& messages = request.conversation.messages;
  ASSERT_EQ(messages.size(), 6u);
  EXPECT_EQ(std::get<text::AssistantMessage>(messages[0]).calls.size(), 3u);
  EXPECT_EQ(std::get<text::AssistantMessage>(messages[4]).calls.size(), 1u);
}

TEST(Responses, ChecksThatCallsAndOutputsMatch) {
  EXPECT_EQ(refusal_of("responses",
                       body(R"("input": [{"type": "function_call_output", "call_id": "7", "output": ""}])"))
                .message,
            "No tool call found for tool output with call_id 7.");
  EXPECT_EQ(refusal_of("responses", body(R"("input": [
      {"type": "function_call", "call_id": "1", "name": "f", "arguments": ""}, {"role": "user", "content": "q"},
      {"type": "function_call_output", "call_id": "1", "output": ""}])"))
                .message,
            "No tool output found for tool call 1.");
}

TEST(Responses, DropsItemsAndToolsItCannotShowAndSaysSo) {
  const auto request = read("responses", body(R"("input": [{"role": "user", "content": "q"},
      {"type": "web_search_call", "id": "w"}, {"type": "item_reference", "id": "i"}],
      "tools": [{"type": "web_search"}, {"type": "image_generation"}, {"type": "tool_search"}], "store": true, "include": [], "user": "u",
      "text": {"verbosity": "low"}, "reasoning": {"summary": "auto"}, "parallel_tool_calls": false)"));
  EXPECT_EQ(request.conversation.messages.size(), 1u);
  EXPECT_TRUE(request.conversation.tools.empty());
  EXPECT_EQ(
      request.ignored_fields,
      (Strings{"include", "input[].type=item_reference", "input[].type=web_search_call",
               "parallel_tool_calls", "reasoning.summary", "text.verbosity", "tools[].type=image_generation",
               "tools[].type=tool_search", "tools[].type=web_search", "user"}));
  EXPECT_EQ(request.store, true);
}

TEST(Responses, ContinuesTheItemsOfAnEarlierResponse) {
  const Json earlier = Json::parse(R"([{"role": "user", "content": "q1"},
      {"type": "reasoning", "id": "rs_1", "content": [{"type": "reasoning_text", "text": "r"}], "summary": []},
      {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text",
       "text": "a1", "annotations": [], "logprobs": []}]}])");
  const Json json =
      Json::parse(body(R"("previous_response_id": "resp_1", "instructions": "I", "input": "q2")"));
  const auto request = wire::read_responses(json, {}, &earlier);
  ASSERT_EQ(request.conversation.messages.size(), 4u);
  EXPECT_EQ(std::get<text::AssistantMessage>(request.conversation.messages[2]).reasoning, "r");
  EXPECT_EQ(request.ignored_fields, Strings{});
}

TEST(Responses, SplitsTheNamesOfNamespaceToolsAgain) {
  const auto request = read("responses", body(R"("input": "q", "tools": [
      {"type": "namespace", "name": "crm", "description": "D", "tools": [{"type": "function", "name": "get"}]},
      {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "get", "description": "own"}]},
      {"type": "custom", "name": "apply_patch", "format": {}},
      {"type": "tool_search", "execution": "client"}])"));
  ASSERT_EQ(request.conversation.tools.size(), 4u);
  EXPECT_EQ(request.conversation.tools[0].name, "crm::get");
  EXPECT_EQ(request.conversation.tools[0].description, "D\n");
  EXPECT_EQ(request.conversation.tools[1].name, "crm::get_1");
  EXPECT_EQ(request.conversation.tools[1].description, "own");
  const wire::ToolOrigin& origin = request.tool_origins.at("crm::get_1");
  EXPECT_EQ(origin.name, "get");
  EXPECT_EQ(origin.name_space, "crm");
  EXPECT_EQ(request.tool_origins.at("apply_patch").kind, wire::ToolOrigin::Kind::custom);
  EXPECT_EQ(request.tool_origins.at("tool_search").kind, wire::ToolOrigin::Kind::search);
}

TEST(Responses, RequiresANamespaceToolByItsName) {
  const auto request = read("responses", body(R"("input": "q", "reasoning": {"effort": "none"}, "tools": [
      {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]},
      {"type": "function", "name": "g"}],
      "tool_choice": {"type": "function", "name": "f", "namespace": "n"})"));
  ASSERT_EQ(request.conversation.tools.size(), 1u);
  EXPECT_EQ(request.conversation.tools[0].name, "n::f");
}

TEST(Responses, EmptyAssistantTextsLeaveNoTraceWhenJoined) {
  EXPECT_EQ(prompt(R"("input": [{"role": "assistant", "content": ""}, {"role": "assistant", "content": "a"},
      {"role": "assistant", "content": ""}])"),
            "<｜Assistant｜></think>a<｜end▁of▁sentence｜><｜Assistant｜></think>");
}

TEST(Responses, ReasoningWithoutAnAnswerIsAMessage) {
  const auto request = read("responses", body(R"("input": [
      {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "r"}]}, {"role": "user", "content": "q"},
      {"type": "reasoning", "content": [{"type": "reasoning_text", "text": ""}]}])"));
  ASSERT_EQ(request.conversation.messages.size(), 2u);
  EXPECT_EQ(std::get<text::AssistantMessage>(request.conversation.messages[0]).reasoning, "r");
}

TEST(Responses, EachSearchBringsItsToolsInItsOwnMessage) {
  const auto request = read("responses", body(R"("input": [
      {"type": "tool_search_call", "call_id": "1", "arguments": {}},
      {"type": "tool_search_call", "call_id": "2", "arguments": {}},
      {"type": "tool_search_output", "call_id": "1", "tools": [{"type": "function", "name": "a"}]},
      {"type": "tool_search_output", "call_id": "2", "tools": [{"type": "namespace", "name": "n", "description": "d",
        "tools": [{"type": "function", "name": "b"}]}]}])"));
  const auto& messages = request.conversation.messages;
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(std::get<text::SystemMessage>(messages[3]).new_tools[0].name, "a");
  EXPECT_EQ(std::get<text::SystemMessage>(messages[4]).new_tools[0].name, "n::b");
  EXPECT_EQ(std::get<std::string>(std::get<text::ToolMessage>(messages[2]).content.parts[0]),
            R"([{"type":"function","name":"b","description":null,"parameters":null,"strict":null,)"
            R"("namespace":{"name":"n","description":"d"}}])");
}

TEST(Responses, TopLogprobsTurnLogprobsOn) {
  EXPECT_TRUE(read("responses", body(R"("input": "q", "top_logprobs": 0)")).inference.logprobs);
  EXPECT_FALSE(read("responses", body(R"("input": "q")")).inference.logprobs);
}

TEST(Responses, NormalisesTheSchemaOfStrictFormatsOnly) {
  const auto constraint = [](const std::string& strict) {
    return read(
               "responses",
               body(
                   R"("input": "q", "text": {"format": {"type": "json_schema", "name": "n", "strict": )" +
                   strict +
                   R"(, "schema": {"type": "object", "title": "t", "properties": {"a": {"type": "null"}}}}})"))
        .inference.constraint->text;
  };
  EXPECT_EQ(constraint("false"), R"({"type":"object","title":"t","properties":{"a":{"type":"null"}}})");
  EXPECT_EQ(
      constraint("true"),
      R"({"type":"object","properties":{"a":{"type":"null"}},"additionalProperties":false,"required":["a"]})");
}

TEST(Responses, ReplacesFilesByANote) {
  EXPECT_EQ(prompt(R"("input": [{"role": "user", "content": [{"type": "input_file", "filename": "a.pdf"},
      {"type": "input_text", "text": "sum up"}]}])"),
            "<｜User｜>[Unsupported Document]\n\nsum up<｜Assistant｜></think>");
}

TEST(Responses, RefusesWhatItCannotHonour) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("previous_response_id": "r")", "previous_response_id"},
      {R"("conversation": "c")", "conversation"},
      {R"("prompt": {"id": "p"})", "prompt"},
      {R"("background": true)", "background"},
      {R"("top_logprobs": 21)", "top_logprobs"},
      {R"("max_output_tokens": 0)", "max_output_tokens"},
      {R"("tools": [{"type": "function", "name": "a b"}])", "tools[0].name"},
      {R"("tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "f"}])", "tools[1].name"},
      {R"("tools": [{"type": "function", "name": "f"}], "tool_choice": "required")", "tool_choice"},
      {R"("text": {"format": {"type": "json_object"}})", "messages"},
  };
  for (const auto& [more, param] : cases) {
    const Refusal refusal = refusal_of("responses", body(std::string(R"("input": "q", )") + more));
    EXPECT_FALSE(refusal.malformed) << more << refusal.message;
    EXPECT_EQ(refusal.param, param) << more;
  }
  EXPECT_EQ(refusal_of("responses", body(R"("input": [])")).param, "input");
  EXPECT_EQ(refusal_of("responses", body(R"("input": [{"role": "assistant", "content":
      [{"type": "input_image", "image_url": "https://x"}]}])"))
                .message,
            "input[0]: Image in assistant message is unsupported");
}

}  // namespace
}  // namespace thalweg::testing
