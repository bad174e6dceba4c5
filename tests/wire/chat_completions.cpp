// What Chat Completions requests may say beyond the golden cases.
#include "text/chat_encoding.hpp"
#include "wire/support.hpp"

namespace thalweg::testing {
namespace {

using Strings = std::vector<std::string>;

constexpr const char* kQ = R"([{"role": "user", "content": "q"}])";

Strings ignored(const std::string& more) {
  return read("chat", chat_body(kQ, more)).ignored_fields;
}

TEST(ChatCompletions, ListsFieldsWithoutEffect) {
  EXPECT_EQ(
      ignored(
          R"("user": "u", "metadata": {}, "frequency_penalty": 1, "presence_penalty": 0, "service_tier": null,
      "top_k": 5, "parallel_tool_calls": false, "thinking": {"type": "enabled", "budget_tokens": 9}, "temperature": 0.2,
      "top_p": 0.5)"),
      (Strings{"frequency_penalty", "metadata", "parallel_tool_calls", "temperature",
               "thinking.budget_tokens", "top_k", "top_p", "user"}));
}

TEST(ChatCompletions, ListsNestedFieldsOnceForAllPlaces) {
  const auto request = read("chat", chat_body(R"([{"role": "user", "content": "a", "name": "n"},
      {"role": "user", "name": "m", "content": [{"type": "text", "text": "b", "cache_control": {}},
                                                {"type": "text", "text": "c", "cache_control": {}}]}])"));
  EXPECT_EQ(request.ignored_fields, (Strings{"messages[].content[].cache_control", "messages[].name"}));
}

TEST(ChatCompletions, NamesOfIgnoredFieldsCannotBreakAHeader) {
  EXPECT_EQ(ignored(R"("a\r\nx-evil: 1, é": 1)"), (Strings{"a??x-evil:?1??\?\?"}));
}

TEST(ChatCompletions, SaysNothingOfSettingsThatHold) {
  EXPECT_EQ(
      ignored(R"("temperature": 1, "top_p": 1, "n": 1, "logit_bias": {}, "modalities": ["text"], "stop": null,
      "parallel_tool_calls": true, "response_format": {"type": "text"}, "tools": [], "tool_choice": "auto")"),
      Strings{});
}

TEST(ChatCompletions, RefusesWhatItCannotHonour) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("functions": [])", "functions"},
      {R"("function_call": "auto")", "function_call"},
      {R"("audio": {})", "audio"},
      {R"("logit_bias": {"5": 1})", "logit_bias"},
      {R"("modalities": ["text", "audio"])", "modalities"},
      {R"("n": 2)", "n"},
      {R"("presence_penalty": -2.5)", "presence_penalty"},
      {R"("top_p": 1.5)", "top_p"},
      {R"("temperature": -0.1)", "temperature"},
      {R"("seed": -1)", "seed"},
      {R"("max_tokens": 393217)", "max_tokens"},
      {R"("max_tokens": -1)", "max_tokens"},
      {R"("max_tokens": 5, "max_completion_tokens": 6)", "max_completion_tokens"},
      {R"("logprobs": true, "top_logprobs": 21)", "top_logprobs"},
      {R"("stop": ["a", ""])", "stop"},
      {R"("continue_final_message": true)", "continue_final_message"},
      {R"("tools": [{"type": "function", "function": {"name": ""}}])", "tools[0].function.name"},
      {R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}])",
       "tools[0].function.parameters"},
      {R"("tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": 5}}}])",
       "tools[0].function.parameters"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "nothing"}}})",
       "response_format.json_schema.schema"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"strict": true, "schema": {}}})",
       "response_format"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"strict": true, "schema": {"type": "object"}}})",
       "response_format"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"strict": true, "schema": {"type": "null"}}})",
       "response_format"},
  };
  for (const auto& [more, param] : cases) {
    const Refusal refusal = refusal_of("chat", chat_body(kQ, more));
    EXPECT_FALSE(refusal.malformed) << more << refusal.message;
    EXPECT_EQ(refusal.param, param) << more;
  }
}

TEST(ChatCompletions, RefusesJsonObjectWithAPrefix) {
  EXPECT_EQ(refusal_of("chat", chat_body(R"([{"role": "user", "content": "json"},
      {"role": "assistant", "content": "{", "prefix": true}])",
                                         R"("response_format": {"type": "json_object"})"))
                .param,
            "response_format");
}

TEST(ChatCompletions, LooksForTheWordJsonInTextsOnly) {
  const auto accepted = [](const std::string& message) {
    try {
      read("chat", chat_body("[" + message + "]", R"("response_format": {"type": "json_object"})"));
      return true;
    } catch (const wire::RejectedRequest&) {
      return false;
    }
  };
  EXPECT_TRUE(accepted(R"({"role": "system", "content": [{"type": "text", "text": "as JSoN."}]})"));
  EXPECT_TRUE(accepted(R"({"role": "latest_reminder", "content": "JSON"})"));
  EXPECT_FALSE(accepted(R"({"role": "assistant", "content": "a", "reasoning_content": "json"})"));
  EXPECT_FALSE(accepted(R"({"role": "user", "content": "j son"})"));
}

TEST(ChatCompletions, ThinkingTypeBeatsTemplateArgumentsWhichBeatEffort) {
  const auto thinking = [](const std::string& more) {
    return read("chat", chat_body(kQ, more)).conversation.thinking;
  };
  EXPECT_FALSE(thinking(R"("chat_template_kwargs": {"thinking": false})"));
  EXPECT_FALSE(thinking(R"("chat_template_kwargs": {"enable_thinking": false}, "reasoning_effort": "high")"));
  EXPECT_TRUE(thinking(R"("chat_template_kwargs": {"thinking": false}, "thinking": {"type": "adaptive"})"));
  EXPECT_TRUE(thinking(R"("chat_template_kwargs": {"thinking": true}, "reasoning_effort": "none")"));
  EXPECT_FALSE(thinking(R"("thinking": {"type": "disabled"}, "reasoning_effort": "max")"));
}

TEST(ChatCompletions, ThePolicyMayTurnThinkingOffByDefault) {
  const wire::Policy policy{.thinking_by_default = false};
  EXPECT_FALSE(read("chat", chat_body(kQ), policy).conversation.thinking);
  EXPECT_TRUE(read("chat", chat_body(kQ, R"("reasoning_effort": "low")"), policy).conversation.thinking);
}

TEST(ChatCompletions, ContinueFinalMessageIsAPrefix) {
  const std::string messages = R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a")";
  EXPECT_EQ(prompt_of("chat", chat_body(messages + "}]", R"("continue_final_message": true)")),
            prompt_of("chat", chat_body(messages + R"(, "prefix": true}])")));
}

TEST(ChatCompletions, TakesArgumentsAsAnObject) {
  const auto prompt = [](const std::string& arguments) {
    return prompt_of(
        "chat", chat_body(R"([{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "index": 0,
        "function": {"name": "f", "arguments": )" +
                          arguments + R"(}}]}, {"role": "tool", "tool_call_id": "1", "content": ""}])"));
  };
  EXPECT_EQ(prompt(R"({"a": [1, -0, 2.50], "b": "é"})"), prompt(R"("{\"a\":[1,-0,2.50],\"b\":\"é\"}")"));
}

TEST(ChatCompletions, TakesAnAssistantMessageWithReasoningOnly) {
  EXPECT_EQ(
      prompt_of("chat", chat_body(R"([{"role": "assistant", "content": null, "reasoning_content": "r"}])",
                                  R"("thinking": {"type": "disabled"})")),
      "<｜begin▁of▁sentence｜><｜Assistant｜></think><｜end▁of▁sentence｜><｜Assistant｜></think>");
}

TEST(ChatCompletions, TakesImagesAsStringsAndFiles) {
  const auto request = read("chat", chat_body(R"([{"role": "user", "content": [
      {"type": "image_url", "image_url": "https://example.com/a.png"},
      {"type": "file", "file": {"filename": "a.gif", "file_data": "DATA:image/GIF;x=y;base64,R0lGODlh"}},
      {"type": "file", "file_data": "data:image/gif;base64,R0lGODlh"}]}])"));
  EXPECT_EQ(request.ignored_fields, (Strings{"messages[].content[].file.filename"}));
  const auto prompt = text::render(request.conversation);
  ASSERT_EQ(prompt.images.size(), 3u);
  EXPECT_EQ(prompt.images[0].kind, text::Image::Kind::url);
  EXPECT_EQ(prompt.images[1].kind, text::Image::Kind::data_url);
}

TEST(ChatCompletions, RefusesImagesThatAreNone) {
  for (const char* url :
       {"", "image.png", "file:///etc/passwd", "data:text/plain;base64,AAAA", "data:image/png,AAAA",
        "data:image/bmp;base64,AAAA", "data:image/png;base64,A", "data:image/png;base64,AA?A",
        "data:image/png;base64,AA=", "data:image/png;base64,A==="}) {
    const Refusal refusal = refusal_of("chat", chat_body(std::string(R"([{"role": "user", "content": "x"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": ")") +
                                                         url + R"("}}]}])"));
    EXPECT_EQ(refusal.message.rfind(".messages[1]: ", 0), 0u) << url << refusal.message;
    EXPECT_EQ(refusal.param, "messages[1].content[0].image_url.url");
  }
}

TEST(ChatCompletions, RefusesTooManyImages) {
  std::string parts;
  for (int i = 0; i < 601; ++i) {
    parts += std::string(i == 0 ? "" : ",") + R"({"type": "image_url", "image_url": "https://x"})";
  }
  EXPECT_EQ(refusal_of("chat", chat_body(R"([{"role": "user", "content": [)" + parts + "]}]")).message,
            ".messages[0]: Too many images, at most 600 are supported");
}

TEST(ChatCompletions, KeepsOnlyANamedTool) {
  const auto request = read("chat", chat_body(kQ, R"("thinking": {"type": "disabled"}, "tools": [
      {"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "g"}}],
      "tool_choice": {"type": "function", "function": {"name": "g"}})"));
  ASSERT_EQ(request.conversation.tools.size(), 1u);
  EXPECT_EQ(request.conversation.tools[0].name, "g");
  EXPECT_EQ(request.conversation.tool_choice, text::ToolChoice::required);
  EXPECT_TRUE(request.parsing.starts_in_tool_calls);
}

TEST(ChatCompletions, ARequiredChoiceWithoutToolsHasNoEffect) {
  const auto request = read("chat", chat_body(kQ, R"("tool_choice": "required")"));
  EXPECT_EQ(request.conversation.tool_choice, text::ToolChoice::automatic);
}

TEST(ChatCompletions, ShowsStrictToolsRewritten) {
  const std::string prompt =
      prompt_of("chat", chat_body(kQ, R"("tools": [{"type": "function", "function": {"name": "f",
      "strict": true, "parameters": {"type": "object", "properties": {"x": {"title": "X", "type": "string"}}}}}])"));
  EXPECT_NE(
      prompt.find(
          R"({"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": false, )"
          R"("required": ["x"]})"),
      std::string::npos);
}

TEST(ChatCompletions, ChecksStrictToolsOnlyIfTheyMayBeUsed) {
  const std::string tools = R"("tools": [{"type": "function", "function": {"name": "f", "strict": true,
      "parameters": {"type": "object", "properties": {"a": {}}}}}, {"type": "function", "function": {"name": "g"}}])";
  EXPECT_EQ(refusal_of("chat", chat_body(kQ, tools)).param, "tools");
  EXPECT_NO_THROW(read("chat", chat_body(kQ, tools + R"(, "tool_choice": "none")")));
}

TEST(ChatCompletions, RefusesStrictToolsBesideAResponseFormat) {
  EXPECT_EQ(
      refusal_of("chat",
                 chat_body(kQ, R"("tools": [{"type": "function", "function": {"name": "f", "strict": true}}],
      "response_format": {"type": "regex", "regex": "a"})"))
          .message,
      "response_format should not be used with tools");
}

TEST(ChatCompletions, OffersARegularExpressionAsConstraint) {
  const auto request =
      read("chat", chat_body(kQ, R"("response_format": {"type": "regex", "regex": "[ab]+"})"));
  ASSERT_TRUE(request.inference.constraint.has_value());
  EXPECT_EQ(request.inference.constraint->kind, wire::OutputConstraint::Kind::regex);
  EXPECT_EQ(request.inference.constraint->text, "[ab]+");
}

TEST(ChatCompletions, ReadsStreamOptionsAndLogprobs) {
  const auto request =
      read("chat", chat_body(kQ, R"("stream": true, "stream_options": {"include_usage": true},
      "logprobs": true, "top_logprobs": 20)"));
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_TRUE(request.inference.logprobs);
  EXPECT_EQ(request.inference.top_logprobs, 20u);
}

TEST(ChatCompletions, RefusesARepeatedCallIdInOneMessage) {
  EXPECT_EQ(refusal_of("chat", chat_body(R"([{"role": "assistant", "tool_calls": [
      {"id": "1", "type": "function", "function": {"name": "f", "arguments": ""}},
      {"id": "1", "type": "function", "function": {"name": "f", "arguments": ""}}]}])"))
                .param,
            "messages[0].tool_calls[1].id");
}

}  // namespace
}  // namespace thalweg::testing
