// What Messages requests may say beyond the golden cases.
#include "text/chat_encoding.hpp"
#include "wire/support.hpp"

namespace thalweg::testing {
namespace {

using Strings = std::vector<std::string>;

std::string body(const std::string& messages, const std::string& more = R"("max_tokens": 9)") {
  return R"({"model": "DeepSeek-V4.1-Flash", "messages": )" + messages + ", " + more + "}";
}

// With thinking off, which makes prompts short.
std::string prompt(const std::string& messages, const std::string& more = R"("max_tokens": 9)") {
  std::string found = prompt_of("messages", body(messages, more + R"(, "thinking": {"type": "disabled"})"));
  return found.substr(found.find("｜>") + std::string("｜>").size());  // without BOS
}

constexpr const char* kQ = R"([{"role": "user", "content": "q"}])";
constexpr const char* kTools = R"("tools": [{"name": "f", "input_schema": {"type": "object"}},
    {"name": "late", "input_schema": {"type": "object"}, "defer_loading": true}])";

TEST(Messages, ServesAnyClaudeNameButNoOtherUnknownOne) {
  const auto named = [](const std::string& model) {
    return R"({"model": ")" + model + R"(", "messages": )" + kQ + "}";
  };
  EXPECT_EQ(read("messages", named("claude-sonnet-9")).model, "claude-sonnet-9");
  EXPECT_EQ(refusal_of("messages", named("gpt-9")).param, "model");
}

TEST(Messages, LowersALimitBeyondTheBoundAndSaysSo) {
  const auto request = read("messages", body(kQ, R"("max_tokens": 4000000000)"));
  EXPECT_EQ(request.inference.max_tokens, 393216u);
  EXPECT_EQ(request.ignored_fields, (Strings{"max_tokens"}));
  EXPECT_EQ(refusal_of("messages", body(kQ, R"("max_tokens": 0)")).param, "max_tokens");
}

TEST(Messages, NeedsNoLimit) {
  EXPECT_FALSE(read("messages", body(kQ, R"("stream": true)")).inference.max_tokens.has_value());
}

TEST(Messages, JoinsBlocksWithABlankLine) {
  EXPECT_EQ(
      prompt(R"([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "user", "content": "c"}, {"role": "assistant", "content": [{"type": "text", "text": "d"},
      {"type": "thinking", "thinking": "t"}, {"type": "text", "text": "e"}]}])",
             R"("system": [{"type": "text", "text": "s"}, {"type": "text", "text": "u"}])"),
      "<｜System｜>s\n\nu<｜User｜>a\n\nb\n\nc<｜Assistant｜></"
      "think>d\n\ne<｜end▁of▁sentence｜><｜Assistant｜></think>");
}

TEST(Messages, KeepsAnEmptySystemMessage) {
  EXPECT_EQ(prompt(kQ, R"("system": "")"), "<｜System｜><｜User｜>q<｜Assistant｜></think>");
}

TEST(Messages, DescribesDocuments) {
  EXPECT_EQ(prompt(R"([{"role": "user", "content": [
      {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}},
      {"type": "document", "source": {"type": "url", "url": "https://x"}}]}])"),
            "<｜User｜>[Unsupported document type: application/pdf]\n\n[Unsupported document type: unknown]"
            "<｜Assistant｜></think>");
}

TEST(Messages, TakesImagesInlineAndByUrl) {
  const auto request = read("messages", body(R"([{"role": "user", "content": [
      {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
      {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}]}])"));
  const auto rendered = text::render(request.conversation);
  ASSERT_EQ(rendered.images.size(), 2u);
  EXPECT_EQ(rendered.images[0].url, "data:image/png;base64,iVBORw0KGgo=");
  EXPECT_EQ(rendered.images[1].url, "https://x/y.png");
}

TEST(Messages, TakesResultsSplitOverUserMessages) {
  const std::string found = prompt(R"([{"role": "assistant", "content": [
      {"type": "tool_use", "id": "1", "name": "f", "input": {}}, {"type": "tool_use", "id": "2", "name": "f", "input": {}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "2", "content": "two"}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "one"},
                                   {"type": "text", "text": "go on"}]}])");
  EXPECT_NE(found.find("<tool_result>one</tool_result>\n\n<tool_result>two</tool_result>\n\ngo on"),
            std::string::npos)
      << found;
}

TEST(Messages, RefusesTextBeforeResults) {
  EXPECT_EQ(refusal_of("messages", body(R"([{"role": "assistant", "content": [{"type": "tool_use", "id": "1",
      "name": "f", "input": {}}]}, {"role": "user", "content": [{"type": "text", "text": "x"},
      {"type": "tool_result", "tool_use_id": "1"}]}])"))
                .message.substr(0, 74),
            "messages.1: `tool_use` ids were found without `tool_result` blocks immedia");
}

TEST(Messages, BringsReferencedToolsAfterTheMessage) {
  const std::string found = prompt(R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": [
      {"type": "tool_use", "id": "1", "name": "f", "input": {}}]}, {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "tool_reference", "tool_name": "late"}]},
      {"type": "text", "text": "now"}]}])",
                                   kTools);
  EXPECT_NE(
      found.find("<tool_result>late</tool_result>\n\nnow<｜System｜>\n\n### Updated Tool Schemas\n\n"
                 R"({"name": "late", "description": "", "parameters": {"type": "object"}}<｜Assistant｜>)"),
      std::string::npos)
      << found;
}

TEST(Messages, RefusesReferencesThatMultiplyASchema) {
  std::string references;
  for (int i = 0; i < 20; ++i) {
    references += std::string(i == 0 ? "" : ",") +
                  R"({"type": "tool_addition", "tool": {"type": "tool_reference", "name": "f"}})";
  }
  const std::string tools = R"("tools": [{"name": "f", "description": ")" + std::string(1 << 20, 'x') +
                            R"(", "input_schema": {"type": "object"}}])";
  EXPECT_EQ(
      refusal_of("messages", body(R"([{"role": "system", "content": [)" + references + "]}]", tools)).message,
      "Tool references bring more than 16777216 bytes of schemas");
}

TEST(Messages, DropsMessagesThatOnlyBringToolsLeftOutByTheChoice) {
  EXPECT_EQ(read("messages", body(R"([{"role": "system", "content": [
      {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "late"}}]}, {"role": "user", "content": "q"}])",
                                  std::string(kTools) + R"(, "thinking": {"type": "disabled"},
      "tool_choice": {"type": "tool", "name": "f"})"))
                .conversation.messages.size(),
            1u);
}

TEST(Messages, ChoiceAnyIsAutoAndSaidSo) {
  const auto request =
      read("messages", body(kQ, std::string(kTools) + R"(, "tool_choice": {"type": "any"})"));
  EXPECT_EQ(request.conversation.tool_choice, text::ToolChoice::automatic);
  EXPECT_EQ(request.ignored_fields, (Strings{"tool_choice.type"}));
}

TEST(Messages, ANamedToolIsRequired) {
  const auto request = read("messages", body(kQ, std::string(kTools) + R"(, "thinking": {"type": "disabled"},
      "tool_choice": {"type": "tool", "name": "late", "disable_parallel_tool_use": true})"));
  ASSERT_EQ(request.conversation.tools.size(), 1u);
  EXPECT_FALSE(request.conversation.tools[0].deferred);
  EXPECT_EQ(request.conversation.tool_choice, text::ToolChoice::required);
}

TEST(Messages, ListsFieldsWithoutEffect) {
  const auto request =
      read("messages", body(R"([{"role": "user", "content": [{"type": "text", "text": "q",
      "cache_control": {"type": "ephemeral"}}]}])",
                            R"("top_k": 5, "metadata": {"user_id": "u"}, "service_tier": "auto",
      "output_config": {"format": {}, "effort": "high"}, "tools": [{"type": "custom", "name": "f", "strict": true,
      "input_schema": {"type": "object"}}])"));
  EXPECT_EQ(request.ignored_fields,
            (Strings{"messages[].content[].cache_control", "metadata.user_id", "output_config.format",
                     "service_tier", "tools[].strict", "top_k"}));
}

TEST(Messages, RefusesWhatItCannotHonour) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([{"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}])",
       "messages[0].content[0].type"},
      {R"([{"role": "assistant", "content": [{"type": "server_tool_use", "id": "1"}]}])",
       "messages[0].content[0].type"},
      {R"([{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}},
           {"type": "text", "text": "x"}]}])",
       "messages[0].content[1]"},
      {R"([{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}},
           {"type": "tool_use", "id": "1", "name": "f", "input": {}}]}])",
       "messages[0].content[1].id"},
      {R"([{"role": "user", "content": []}])", "messages[0].content"},
      {R"([{"role": "assistant", "content": []}])", "messages[0].content"},
      {R"([{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "ftp://x"}}]}])",
       "messages[0].content[0].source.url"},
      {R"([{"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "1"}}]}])",
       "messages[0].content[0].source.type"},
      {R"([{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/tiff",
           "data": "AAAA"}}]}])",
       "messages[0].content[0].source"},
      {R"([{"role": "system", "content": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "x"}}]}])",
       "messages[0].content[0].tool.name"},
  };
  for (const auto& [messages, param] : cases) {
    const Refusal refusal = refusal_of("messages", body(messages));
    EXPECT_FALSE(refusal.malformed) << messages << refusal.message;
    EXPECT_EQ(refusal.param, param) << messages;
  }
  EXPECT_EQ(
      refusal_of(
          "messages",
          body(kQ, R"("tools": [{"name": "f", "input_schema": {"type": "object"}, "defer_loading": true}])"))
          .param,
      "tools");
}

}  // namespace
}  // namespace thalweg::testing
