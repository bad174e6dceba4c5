// G5: histories of 4,096 calls and results are read and rendered whole, in each format.
#include <fmt/format.h>

#include "text/chat_encoding.hpp"
#include "wire/support.hpp"

namespace thalweg::testing {
namespace {

constexpr int kPairs = 4096;

std::string repeat(std::string list, const std::function<std::string(int)>& pair) {
  for (int i = 0; i < kPairs; ++i) list += ", " + pair(i);
  return list + "]";
}

void expect_whole(const std::string& api, const std::string& body) {
  wire::Request request = read(api, body);
  const auto& messages = request.conversation.messages;
  EXPECT_EQ(messages.size(), 2u * kPairs + 1);
  const text::Prompt prompt = text::render(std::move(request.conversation));
  std::size_t ends = 0;
  for (const text::Segment& segment : prompt.segments) {
    const auto* control = std::get_if<text::Control>(&segment);
    ends += control != nullptr && *control == text::Control::eos ? 1 : 0;
  }
  EXPECT_EQ(ends, static_cast<std::size_t>(kPairs));
}

TEST(LongHistories, ChatCompletions) {
  expect_whole(
      "chat", chat_body(repeat(R"([{"role": "user", "content": "q"})", [](int i) {
        return fmt::format(
            R"({{"role": "assistant", "content": null, "tool_calls": [{{"id": "c{0}", "type": "function",
        "function": {{"name": "f", "arguments": "{{\"x\": {0}}}"}}}}]}},
        {{"role": "tool", "tool_call_id": "c{0}", "content": "r{0}"}})",
            i);
      })));
}

TEST(LongHistories, Responses) {
  const std::string input = repeat(R"([{"role": "user", "content": "q"})", [](int i) {
    return fmt::format(
        R"({{"type": "function_call", "call_id": "c{0}", "name": "f", "arguments": "{{\"x\": {0}}}"}},
        {{"type": "function_call_output", "call_id": "c{0}", "output": "r{0}"}})",
        i);
  });
  expect_whole("responses", R"({"model": "DeepSeek-V4.1-Flash", "input": )" + input + "}");
}

TEST(LongHistories, Messages) {
  const std::string messages = repeat(R"([{"role": "user", "content": "q"})", [](int i) {
    return fmt::format(R"({{"role": "assistant", "content": [{{"type": "tool_use", "id": "c{0}", "name": "f",
        "input": {{"x": {0}}}}}]}},
        {{"role": "user", "content": [{{"type": "tool_result", "tool_use_id": "c{0}", "content": "r{0}"}}]}})",
                       i);
  });
  expect_whole("messages", R"({"model": "DeepSeek-V4.1-Flash", "messages": )" + messages + "}");
}

// One message with all calls, results in reverse: nothing may be compared pair by pair.
TEST(LongHistories, OneTurnWithAllCalls) {
  std::string calls;
  std::string results;
  for (int i = 0; i < kPairs; ++i) {
    calls += fmt::format(
        R"({}{{"id": "c{}", "type": "function", "function": {{"name": "f", "arguments": "{{}}"}}}})",
        i == 0 ? "" : ", ", i);
    results +=
        fmt::format(R"(, {{"role": "tool", "tool_call_id": "c{0}", "content": "r{0}"}})", kPairs - 1 - i);
  }
  wire::Request request = read("chat", chat_body(R"([{"role": "user", "content": "q"}, {"role": "assistant",
      "content": "", "tool_calls": [)" + calls + "]}" +
                                                 results + "]"));
  const std::string prompt =
      prompt_text(text::render(std::move(request.conversation)), released_tokenizer(), released_specials());
  EXPECT_LT(prompt.find("r0</tool_result>"), prompt.find("r4095</tool_result>"));
}

}  // namespace
}  // namespace thalweg::testing
