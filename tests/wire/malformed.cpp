// Bodies that are refused for their form: always an error that names the place, never a crash.
#include "wire/support.hpp"

namespace thalweg::testing {
namespace {

struct Case {
  const char* api;
  const char* body;  ///< what follows {"model": "DeepSeek-V4.1-Flash",
  const char* param;
};

std::string whole(const std::string& rest) {
  return R"({"model": "DeepSeek-V4.1-Flash", )" + rest + "}";
}

TEST(Malformed, NamesTheField) {
  const Case cases[] = {
      {"chat", R"("messages": 5)", "messages"},
      {"chat", R"("messages": {})", "messages"},
      {"chat", R"("messages": null)", "messages"},
      {"chat", R"("messages": ["q"])", "messages[0]"},
      {"chat", R"("messages": [{"content": "q"}])", "messages[0].role"},
      {"chat", R"("messages": [{"role": 1, "content": "q"}])", "messages[0].role"},
      {"chat", R"("messages": [{"role": "user"}])", "messages[0].content"},
      {"chat", R"("messages": [{"role": "user", "content": {}}])", "messages[0].content"},
      {"chat", R"("messages": [{"role": "user", "content": ["q"]}])", "messages[0].content[0]"},
      {"chat", R"("messages": [{"role": "user", "content": [{"text": "q"}]}])",
       "messages[0].content[0].type"},
      {"chat", R"("messages": [{"role": "user", "content": [{"type": "text"}]}])",
       "messages[0].content[0].text"},
      {"chat", R"("messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}])",
       "messages[0].content[0].type"},
      {"chat", R"("messages": [{"role": "user", "content": [{"type": "image_url", "image_url": 5}]}])",
       "messages[0].content[0].image_url"},
      {"chat",
       R"("messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x", "detail": "huge"}}]}])",
       "messages[0].content[0].image_url.detail"},
      {"chat", R"("messages": [{"role": "assistant", "content": "a", "prefix": 1}])", "messages[0].prefix"},
      {"chat", R"("messages": [{"role": "assistant", "tool_calls": {}}])", "messages[0].tool_calls"},
      {"chat", R"("messages": [{"role": "assistant", "tool_calls": [{"type": "function"}]}])",
       "messages[0].tool_calls[0].id"},
      {"chat", R"("messages": [{"role": "assistant", "tool_calls": [{"id": "1", "type": "f"}]}])",
       "messages[0].tool_calls[0].type"},
      {"chat",
       R"("messages": [{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": 5}}]}])",
       "messages[0].tool_calls[0].function.arguments"},
      {"chat", R"("messages": [], "temperature": "1")", "temperature"},
      {"chat", R"("messages": [], "top_p": true)", "top_p"},
      {"chat", R"("messages": [], "max_tokens": 1.5)", "max_tokens"},
      {"chat", R"("messages": [], "seed": "1")", "seed"},
      {"chat", R"("messages": [], "seed": 1e30)", "seed"},
      {"chat", R"("messages": [], "n": 1.5)", "n"},
      {"chat", R"("messages": [], "stop": 5)", "stop"},
      {"chat", R"("messages": [], "stop": ["a", 5])", "stop[1]"},
      {"chat", R"("messages": [], "stream": "yes")", "stream"},
      {"chat", R"("messages": [], "logprobs": 1)", "logprobs"},
      {"chat", R"("messages": [], "thinking": true)", "thinking"},
      {"chat", R"("messages": [], "thinking": {"type": "maybe"})", "thinking.type"},
      {"chat", R"("messages": [], "reasoning_effort": 5.5)", "reasoning_effort"},
      {"chat", R"("messages": [], "reasoning_effort": "")", "reasoning_effort"},
      {"chat", R"("messages": [], "tools": {})", "tools"},
      {"chat", R"("messages": [], "tools": [{"type": "retrieval"}])", "tools[0].type"},
      {"chat", R"("messages": [], "tools": [{"type": "function"}])", "tools[0].function"},
      {"chat",
       R"("messages": [], "tools": [{"type": "function", "function": {"name": "f", "parameters": []}}])",
       "tools[0].function.parameters"},
      {"chat", R"("messages": [{"role": "user", "content": "q"}], "tool_choice": "maybe")", "tool_choice"},
      {"chat", R"("messages": [{"role": "user", "content": "q"}], "tool_choice": {"type": "allowed_tools"})",
       "tool_choice.type"},
      {"chat", R"("messages": [{"role": "user", "content": "q"}], "response_format": {"type": "xml"})",
       "response_format.type"},
      {"chat",
       R"("messages": [{"role": "user", "content": "q"}], "response_format": {"type": "json_schema"})",
       "response_format.json_schema"},
      {"chat",
       R"("messages": [{"role": "user", "content": "q"}], "response_format": {"type": "json_schema", "json_schema": {}})",
       "response_format.json_schema.schema"},
      {"chat", R"("messages": [{"role": "user", "content": "q"}], "continue_final_message": 1)",
       "continue_final_message"},
      {"chat", R"("messages": [], "chat_template_kwargs": {"thinking": 1})", "chat_template_kwargs.thinking"},
      {"responses", R"("input": [5])", "input[0]"},
      {"responses", R"("input": [{"content": "q"}])", "input[0].role"},
      {"responses", R"("input": [{"role": "robot", "content": "q"}])", "input[0].role"},
      {"responses", R"("input": [{"role": "user", "content": [{"type": "text", "text": "q"}]}])",
       "input[0].content[0].type"},
      {"responses", R"("input": [{"type": "function_call", "call_id": "1", "name": "f"}])",
       "input[0].arguments"},
      {"responses", R"("input": [{"type": "reasoning", "content": "why"}])", "input[0].content"},
      {"responses",
       R"("input": [{"role": "user", "content": [{"type": "input_image", "image_url": {"url": "https://x"}}]}])",
       "input[0].content[0].image_url"},
      {"responses", R"("input": "q", "instructions": 5)", "instructions"},
      {"responses", R"("input": "q", "reasoning": "high")", "reasoning"},
      {"responses", R"("input": "q", "reasoning": {"summary": "long"})", "reasoning.summary"},
      {"responses", R"("input": "q", "text": {"verbosity": "loud"})", "text.verbosity"},
      {"responses", R"("input": "q", "text": {"format": {"type": "json_schema"}})", "text.format.schema"},
      {"responses", R"("input": "q", "tools": [{"type": "namespace", "name": "n"}])", "tools[0].tools"},
      {"responses",
       R"("input": "q", "tools": [{"type": "namespace", "name": "n", "tools": [{"type": "search"}]}])",
       "tools[0].tools[0].type"},
      {"messages", R"("messages": "q")", "messages"},
      {"messages", R"("messages": [{"role": "user"}])", "messages[0].content"},
      {"messages", R"("messages": [{"role": "tool", "content": "q"}])", "messages[0].role"},
      {"messages", R"("messages": [{"role": "user", "content": [{"type": "image"}]}])",
       "messages[0].content[0].source"},
      {"messages",
       R"("messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64"}}]}])",
       "messages[0].content[0].source.media_type"},
      {"messages",
       R"("messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": "x"}]}])",
       "messages[0].content[0].input"},
      {"messages", R"("messages": [{"role": "system", "content": [{"type": "tool_addition"}]}])",
       "messages[0].content[0].tool"},
      {"messages", R"("messages": [{"role": "user", "content": "q"}], "system": 5)", "system"},
      {"messages", R"("messages": [{"role": "user", "content": "q"}], "tools": [{"name": "f"}])",
       "tools[0].input_schema"},
      {"messages", R"("messages": [{"role": "user", "content": "q"}], "tool_choice": {"type": "some"})",
       "tool_choice.type"},
      {"messages", R"("messages": [{"role": "user", "content": "q"}], "max_tokens": "5")", "max_tokens"},
      {"messages", R"("messages": [{"role": "user", "content": "q"}], "output_config": {"effort": "huge"})",
       "output_config.effort"},
  };
  for (const Case& c : cases) {
    const Refusal refusal = refusal_of(c.api, whole(c.body));
    EXPECT_TRUE(refusal.malformed) << c.body << ": " << refusal.message;
    EXPECT_EQ(refusal.param, c.param) << c.body;
    EXPECT_EQ(refusal.message.rfind(std::string(c.param) + ": ", 0), 0u) << refusal.message;
  }
}

TEST(Malformed, BodiesThatAreNotJson) {
  const std::string cases[] = {"",
                               "{",
                               "null",
                               "[]",
                               "5",
                               "\"text\"",
                               "{\"a\": NaN}",
                               "{\"seed\": Infinity}",
                               "{\"a\": -Infinity}",
                               "{\"a\": 1e999}",
                               "{\"a\": 01}",
                               "{'a': 1}",
                               "{\"a\": 1,}",
                               "{\"a\": \"\\ud800\"}",
                               "{\"a\": \"\\udc00x\"}",
                               "{\"a\": \"\xff\"}",
                               "{\"a\": \"\xed\xa0\x80\"}",
                               "{\"a\": \"\xc0\x80\"}",
                               "{\"a\": \"\x01\"}",
                               "{} {}",
                               std::string("{\0}", 3)};
  for (const std::string& body : cases) EXPECT_TRUE(refusal_of("chat", body).malformed) << body;
}

TEST(Malformed, RepeatedMembersAnywhere) {
  EXPECT_NE(refusal_of("chat", R"({"model": "a", "model": "b"})").message.find("\"model\" appears twice"),
            std::string::npos);
  EXPECT_TRUE(
      refusal_of("chat", chat_body(R"([{"role": "user", "content": "a", "content": "b"}])")).malformed);
}

TEST(Malformed, NestingStopsAt128Levels) {
  const auto nested = [](int levels) {
    const auto depth = static_cast<std::size_t>(levels - 1);  // the body is one level
    return chat_body(R"([{"role": "user", "content": "q"}])",
                     "\"x\": " + std::string(depth, '[') + std::string(depth, ']'));
  };
  EXPECT_NO_THROW(read("chat", nested(128)));
  EXPECT_NE(refusal_of("chat", nested(129)).message.find("nested deeper than 128 levels"), std::string::npos);
  EXPECT_NE(refusal_of("chat", std::string(1000000, '[')).message.find("nested deeper than 128 levels"),
            std::string::npos);
}

TEST(Malformed, LongValuesAreNotRepeatedInTheMessage) {
  const Refusal refusal = refusal_of("chat", chat_body("\"" + std::string(100000, 'x') + "\""));
  EXPECT_LT(refusal.message.size(), 200u);
}

}  // namespace
}  // namespace thalweg::testing
