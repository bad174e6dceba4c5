// Bodies that are no good, over the APIs: each has its status, the shape of its API, and names its field.
#include "serve/service_fixture.hpp"

namespace thalweg::testing {
namespace {

struct Case {
  std::string members;  ///< after a valid start; a repeated member would be a fault of its own
  std::string field;    ///< named by `param`, or in the message where the API has no such member
};

struct Table {
  const char* path;
  std::string start;
  std::vector<Case> cases;
};

const std::string kUser = R"("messages": [{"role": "user", "content": "q"}])";

std::vector<Table> tables() {
  const std::string model = R"("model": "deepseek-flash")";
  return {
      {"/v1/chat/completions",
       model + ", " + kUser,
       {{R"("max_tokens": 0)", "max_tokens"},
        {R"("max_tokens": -1)", "max_tokens"},
        {R"("max_tokens": 1.5)", "max_tokens"},
        {R"("max_tokens": "9")", "max_tokens"},
        {R"("max_tokens": 1e300)", "max_tokens"},
        {R"("max_tokens": 18446744073709551615)", "max_tokens"},
        {R"("n": 0)", "n"},
        {R"("n": 99999999999)", "n"},
        {R"("temperature": 2.1)", "temperature"},
        {R"("temperature": -0.1)", "temperature"},
        {R"("temperature": "hot")", "temperature"},
        {R"("top_p": 0)", "top_p"},
        {R"("top_p": [1])", "top_p"},
        {R"("seed": -1)", "seed"},
        {R"("seed": 9223372036854775808)", "seed"},
        {R"("stop": 5)", "stop"},
        {R"("stop": [""])", "stop"},
        {R"("stop": ["a", 1])", "stop[1]"},
        {R"("logprobs": 1)", "logprobs"},
        {R"("top_logprobs": 3)", "top_logprobs"},
        {R"("logprobs": true, "top_logprobs": 21)", "top_logprobs"},
        {R"("stream": "yes")", "stream"},
        {R"("stream_options": {})", "stream_options"},
        {R"("frequency_penalty": 3)", "frequency_penalty"},
        {R"("tools": {})", "tools"},
        {R"("tools": [{"type": "function"}])", "tools[0].function"},
        {R"("tools": [{"type": "function", "function": {"name": "a b"}}])", "tools[0].function.name"},
        {R"("tool_choice": "maybe")", "tool_choice"},
        {R"("reasoning_effort": 101)", "reasoning_effort"},
        {R"("reasoning_effort": "huge")", "reasoning_effort"},
        {R"("thinking": {"type": "perhaps"})", "thinking.type"},
        {R"("thinking": true)", "thinking"},
        {R"("response_format": "json")", "response_format"},
        {R"("functions": [])", "functions"},
        {R"("logit_bias": {"1": 1})", "logit_bias"}}},
      {"/v1/chat/completions",
       model,
       {{R"("messages": null)", "messages"},
        {R"("messages": "q")", "messages"},
        {R"("messages": [])", "messages"},
        {R"("messages": [5])", "messages[0]"},
        {R"("messages": [{"content": "q"}])", "messages[0].role"},
        {R"("messages": [{"role": "king", "content": "q"}])", "messages[0].role"},
        {R"("messages": [{"role": "user"}])", "messages[0].content"},
        {R"("messages": [{"role": "user", "content": 5}])", "messages[0].content"},
        {R"("messages": [{"role": "user", "content": [{"type": "smell"}]}])", "messages[0].content[0].type"},
        {R"("messages": [{"role": "tool", "content": "r"}])", "messages[0].tool_call_id"},
        {R"("messages": [{"role": "assistant", "tool_calls": []}])", "messages[0].tool_calls"}}},
      {"/v1/responses",
       model + R"(, "input": "q")",
       {{R"("max_output_tokens": 0)", "max_output_tokens"},
        {R"("max_output_tokens": true)", "max_output_tokens"},
        {R"("temperature": {})", "temperature"},
        {R"("top_logprobs": -1)", "top_logprobs"},
        {R"("store": "no")", "store"},
        {R"("previous_response_id": 7)", "previous_response_id"},
        {R"("conversation": "c")", "conversation"},
        {R"("background": true)", "background"},
        {R"("instructions": [])", "instructions"},
        {R"("tools": [{"name": "f"}])", "tools[0].type"},
        {R"("tools": [{"type": "custom", "name": "other"}])", "tools[0].name"},
        {R"("reasoning": {"effort": 0})", "reasoning.effort"},
        {R"("reasoning": {"summary": "long"})", "reasoning.summary"},
        {R"("text": {"verbosity": "loud"})", "text.verbosity"},
        {R"("text": {"format": {"type": "xml"}})", "text.format.type"}}},
      {"/v1/responses",
       model,
       {{R"("input": 5)", "input"},
        {R"("input": [])", "input"},
        {R"("input": [{"role": "user", "content": 5}])", "input[0].content"},
        {R"("input": [{"type": "function_call", "name": "f"}])", "input[0].arguments"},
        {R"("input": [{"type": "function_call_output", "call_id": "1", "output": ""}])",
         "input[0].call_id"}}},
      {"/v1/messages",
       R"("model": "claude-x", )" + kUser,
       {{R"("max_tokens": 0)", "max_tokens"},
        {R"("max_tokens": "9")", "max_tokens"},
        {R"("temperature": 3)", "temperature"},
        {R"("stop_sequences": [1])", "stop_sequences[0]"},
        {R"("system": 5)", "system"},
        {R"("system": [{"type": "image"}])", "system[0].type"},
        {R"("metadata": "m")", "metadata"},
        {R"("tools": [{"name": "f"}])", "tools[0].input_schema"},
        {R"("tools": [{"type": "bash_20250124", "name": "bash"}])", "tools[0]"},
        {R"("tool_choice": "auto")", "tool_choice"},
        {R"("tool_choice": {"type": "most"})", "tool_choice.type"},
        {R"("thinking": {})", "thinking.type"},
        {R"("output_config": {"effort": 200})", "output_config.effort"}}},
      {"/v1/messages",
       R"("model": "claude-x")",
       {{R"("messages": {})", "messages"},
        {R"("messages": [{"role": "user", "content": [{"type": "text"}]}])", "messages[0].content[0].text"},
        {R"("messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": "x"}]}])",
         "messages[0].content[0].input"}}},
  };
}

TEST(MalformedRequests, EachIsRefusedNamingItsField) {
  RunningService running;
  HttpClient client(running.server.port());
  std::size_t cases = 0;
  for (const Table& table : tables()) {
    const bool anthropic = std::string(table.path) == "/v1/messages";
    for (const Case& bad : table.cases) {
      SCOPED_TRACE(std::string(table.path) + " " + bad.members);
      ++cases;
      const ClientReply reply = client.post(table.path, "{" + table.start + ", " + bad.members + "}");
      ASSERT_EQ(reply.status, 400) << reply.body;
      const Json body = reply.json();
      EXPECT_EQ(body["error"]["type"], "invalid_request_error");
      if (anthropic) {
        EXPECT_EQ(body["type"], "error");
        EXPECT_NE(body["error"]["message"].get<std::string>().find(bad.field), std::string::npos)
            << reply.body;
      } else {
        EXPECT_EQ(body["error"]["param"], bad.field) << reply.body;
      }
    }
  }
  EXPECT_GE(cases, 80u);
  EXPECT_EQ(running.backend.statistics().admitted, 0u);
  EXPECT_EQ(client.post(kChatPath, chat_request()).status, 200) << "the connection has survived them all";
}

// Faults of the JSON itself, at every place a body is read.
TEST(MalformedRequests, WhatIsNotJsonIsRefusedByEveryApi) {
  RunningService running;
  HttpClient client(running.server.port());
  const std::vector<std::string> bodies = {"{",
                                           "[]",
                                           "5",
                                           "\"text\"",
                                           "{}{}",
                                           R"({"model": "a",})",
                                           R"({"model": NaN})",
                                           R"({"model": Infinity})",
                                           R"({"model": 1e999})",
                                           R"({"model": "a", "model": "b"})",
                                           R"({"x": {"y": 1, "y": 2}})",
                                           R"({"model": "\ud800"})",
                                           "{\"model\": \"\xff\"}",
                                           "{\"model\": \"\xed\xa0\x80\"}",
                                           std::string("{\"model\": \"a\0b\"}", 17),
                                           "{\"model\": \"line\nbreak\"}",
                                           "\xef\xbb\xbf{\"model\": 5}"};
  for (const char* path : {"/v1/chat/completions", "/v1/responses", "/v1/messages", "/v1/completions",
                           "/v1/messages/count_tokens", "/tokenize", "/detokenize"}) {
    for (const std::string& body : bodies) {
      const ClientReply reply = client.post(path, body);
      EXPECT_EQ(reply.status, 400) << path << " " << body;
      EXPECT_FALSE(reply.json()["error"]["message"].get<std::string>().empty());
    }
  }
}

}  // namespace
}  // namespace thalweg::testing
