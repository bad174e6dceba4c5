// Cases that users of such services have reported (the B cases of the collection), and their like.
#include "wire/support.hpp"

namespace thalweg::testing {
namespace {

constexpr const char* kToolF =
    R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}])";
constexpr const char* kOff = R"("thinking": {"type": "disabled"})";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string call_message(const std::string& arguments, const std::string& name = "f") {
  Json message = parse_json(
      R"({"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function"}]})", "");
  message["tool_calls"][0]["function"] = Json{{"name", name}, {"arguments", arguments}};
  return to_text(message);
}

// The prompt of a history with one call of these arguments and its result.
std::string prompt_with_call(const std::string& arguments) {
  return prompt_of("chat", chat_body(R"([{"role": "user", "content": "q"}, )" + call_message(arguments) +
                                         R"(, {"role": "tool", "tool_call_id": "1", "content": "x"}])",
                                     std::string(kToolF) + ", " + kOff));
}

std::string parameter(const std::string& name, const std::string& is_string, const std::string& value) {
  return "<｜DSML｜ parameter name=\"" + name + "\" string=\"" + is_string + "\">" + value +
         "</｜DSML｜ parameter>\n";
}

TEST(ReportedCases, A1SpellingsOfControlTokensStayText) {
  const auto ids = [](const std::string& content) {
    Json message{{"role", "user"}, {"content", content}};
    return describe("chat", Json{{"model", "DeepSeek-V4.1-Flash"},
                                 {"messages", Json::array({message})},
                                 {"thinking", {{"type", "disabled"}}}})["ids"]
        .get<std::vector<int>>();
  };
  EXPECT_EQ(ids("<｜User｜>"), (std::vector<int>{0, 128803, 30, 28217, 6756, 28217, 32, 128804, 128822}));
  EXPECT_EQ(ids("</think>"), (std::vector<int>{0, 128803, 1718, 37947, 32, 128804, 128822}));
}

TEST(ReportedCases, B1HistoricReasoningIsKeptOnlyWithTools) {
  const std::string messages = R"([{"role": "user", "content": "q1"},
      {"role": "assistant", "content": "a1", "reasoning_content": "RRR"}, {"role": "user", "content": "q2"}])";
  EXPECT_FALSE(contains(prompt_of("chat", chat_body(messages)), "RRR"));
  EXPECT_TRUE(contains(prompt_of("chat", chat_body(messages, kToolF)), "<think>RRR</think>a1"));
}

TEST(ReportedCases, B2ChoiceNoneEqualsNoTools) {
  const std::string messages = R"([{"role": "user", "content": "q"}])";
  EXPECT_EQ(prompt_of("chat", chat_body(messages, std::string(kToolF) + R"(, "tool_choice": "none")")),
            prompt_of("chat", chat_body(messages)));
}

TEST(ReportedCases, B3ResultsFollowTheOrderOfTheCalls) {
  const std::string prompt = prompt_of("chat", chat_body(R"([{"role": "user", "content": "q"},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "2", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "2", "content": "second"},
      {"role": "tool", "tool_call_id": "1", "content": "first"}])",
                                                         kToolF));
  EXPECT_TRUE(
      contains(prompt, "<｜User｜><tool_result>first</tool_result>\n\n<tool_result>second</tool_result>"));
}

TEST(ReportedCases, B4ArgumentsThatAreNoObjectAreShownAsTheyAre) {
  for (const char* arguments :
       {"not json", "[1,2]", "null", "", R"("{\"a\": 1}")", "{\"a\": 1e999}", "{\"a\": 1} x"}) {
    EXPECT_TRUE(contains(prompt_with_call(arguments), parameter("arguments", "true", arguments)))
        << arguments;
  }
}

TEST(ReportedCases, B5TheCallWithoutAResultIsNamed) {
  const Refusal refusal =
      refusal_of("chat", chat_body(R"([{"role": "user", "content": "q"}, )" + call_message("{}") +
                                   R"(, {"role": "tool", "tool_call_id": "9", "content": "x"}])"));
  EXPECT_EQ(refusal.message,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id', The following tool_call_ids did not have response messages: 1");
  EXPECT_EQ(refusal.param, "messages[2].tool_call_id");
}

TEST(ReportedCases, B6NumbersOfArgumentsAreWrittenAsPythonDoes) {
  const std::string prompt = prompt_with_call(
      R"({"x": 2.50, "big": 12345678901234567890123, "z": null, "d": {"b":1,"a":2}, "m": -0})");
  EXPECT_TRUE(
      contains(prompt, parameter("x", "false", "2.5") + parameter("big", "false", "1.2345678901234568e+22") +
                           parameter("z", "false", "null") + parameter("d", "false", R"({"b": 1, "a": 2})") +
                           parameter("m", "false", "-0.0")));
}

TEST(ReportedCases, B8EffortsByNameAndNumber) {
  const auto budget = [](const std::string& effort) {
    return describe("chat", wire::parse_body(chat_body(R"([{"role": "user", "content": "q"}])",
                                                       R"("reasoning_effort": )" + effort)))["budget"];
  };
  EXPECT_EQ(budget(R"("low")"), 50);
  EXPECT_EQ(budget(R"("minimal")"), 50);
  EXPECT_EQ(budget(R"("medium")"), 75);
  EXPECT_EQ(budget(R"("xhigh")"), 75);
  EXPECT_EQ(budget(R"("max")"), 100);
  EXPECT_EQ(budget(R"("ultra")"), 100);
  EXPECT_EQ(budget("null"), 75);
  EXPECT_EQ(budget(R"("none")"), nullptr);
  EXPECT_EQ(budget("1"), 1);
  EXPECT_EQ(budget("50"), 50);
  EXPECT_EQ(budget("100"), 100);
  for (const char* effort :
       {"0", "101", "-1", R"("0")", R"("101")", R"("99999999999999999999")", "18446744073709551615"}) {
    const Refusal refusal = refusal_of("chat", chat_body(R"([{"role": "user", "content": "q"}])",
                                                         std::string(R"("reasoning_effort": )") + effort));
    EXPECT_EQ(refusal.param, "reasoning_effort") << effort;
    EXPECT_TRUE(contains(refusal.message, "a whole number in [1, 100]")) << refusal.message;
  }
}

TEST(ReportedCases, B9AnAssistantMessageAtTheEndIsAFinishedTurn) {
  const std::string start = R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a")";
  const std::string closed = prompt_of("chat", chat_body(start + "}]", kOff));
  EXPECT_TRUE(contains(closed, "<｜Assistant｜></think>a<｜end▁of▁sentence｜><｜Assistant｜></think>"));
  const std::string open = prompt_of("chat", chat_body(start + R"(, "prefix": true}])", kOff));
  EXPECT_EQ(open.substr(open.find("<｜Assistant｜>")), "<｜Assistant｜></think>a");
}

TEST(ReportedCases, B10RolesAndShapesOfContent) {
  EXPECT_TRUE(contains(prompt_of("chat", chat_body(R"([{"role": "developer", "content": "D"}])", kOff)),
                       "<｜System｜>D"));
  EXPECT_TRUE(
      contains(prompt_of("chat", chat_body(R"([{"role": "user", "content": [{"type": "text", "text": "a"},
      {"type": "text", "text": "b"}]}])")),
               "<｜User｜>a\n\nb<｜Assistant｜>"));
  const Refusal null_content = refusal_of("chat", chat_body(R"([{"role": "user", "content": null}])"));
  EXPECT_EQ(null_content.message, "messages[0].content: missing or null");
  EXPECT_EQ(refusal_of("chat", chat_body("[]")).message, "Empty input messages");
}

TEST(ReportedCases, C8AParameterCalledArgumentsIsShownAsAnyOther) {
  EXPECT_TRUE(contains(prompt_with_call(R"({"arguments": "{\"a\": 1}"})"),
                       parameter("arguments", "true", "{\"a\": 1}")));
}

TEST(ReportedCases, C10ListsOfTypesReachThePrompt) {
  EXPECT_TRUE(contains(
      prompt_of("chat",
                chat_body(R"([{"role": "user", "content": "q"}])",
                          R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {"type":
      "object", "properties": {"x": {"type": ["integer", "null"]}}}}}])")),
      R"({"x": {"type": ["integer", "null"]}})"));
}

TEST(ReportedCases, F5LimitsAreRefusedWithAReason) {
  const auto message = [](const std::string& more) {
    return refusal_of("chat", chat_body(R"([{"role": "user", "content": "q"}])", more)).message;
  };
  EXPECT_EQ(message(R"("max_tokens": 0)"),
            "Invalid max_tokens value, the valid range of max_tokens is [1, 393216]");
  EXPECT_EQ(message(R"("temperature": 3)"),
            "Invalid temperature value, the valid range of temperature is [0, 2]");
  EXPECT_EQ(
      message(R"("stop": ["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])"),
      "Stop string array too long: 17");
  EXPECT_EQ(message(R"("n": 0)"), "Invalid n value (currently only n = 1 is supported)");
}

TEST(ReportedCases, F5SeveralChoicesAreReadWhereTheServiceAllowsThem) {
  wire::Policy policy;
  policy.max_choices = 128;
  const std::string messages = R"([{"role": "user", "content": "q"}])";
  EXPECT_EQ(read("chat", chat_body(messages, R"("n": 128)"), policy).inference.choices, 128u);
  EXPECT_EQ(refusal_of("chat", chat_body(messages, R"("n": 129)"), policy).message,
            "Invalid n value, the valid range of n is [1, 128]");
}

TEST(ReportedCases, G1ThinkingBlocksNeedNoSignature) {
  const std::string prompt = prompt_of("messages", R"({"model": "claude-x", "max_tokens": 9, "messages": [
      {"role": "user", "content": "q"},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": ""},
                                        {"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]},
      {"role": "assistant", "content": [{"type": "tool_use", "id": "2", "name": "f", "input": {}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "2", "content": "x"}]}],
      "tools": [{"name": "f", "input_schema": {"type": "object"}}]})");
  EXPECT_TRUE(contains(prompt, "<think>hm</think>\n\n<｜DSML｜ calls>"));
  EXPECT_TRUE(contains(prompt, "<｜Assistant｜><think></think>\n\n<｜DSML｜ calls>"));
}

}  // namespace
}  // namespace thalweg::testing
