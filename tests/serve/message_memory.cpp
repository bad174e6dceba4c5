// Messages that come back are given to the model as the very tokens it generated.
#include "serve/message_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "serve/http_client.hpp"
#include "serve/http_server.hpp"

namespace thalweg::testing {
namespace {

text::ParsedMessage message(const std::string& content, const std::string& reasoning = "") {
  text::ParsedMessage parsed;
  parsed.content = content;
  if (!reasoning.empty()) parsed.reasoning = reasoning;
  return parsed;
}

std::optional<text::ReplayedIds> recalled(serve::MessageMemory& memory, text::AssistantMessage assistant,
                                          const std::string& salt = "") {
  text::Conversation conversation;
  conversation.messages.push_back(std::move(assistant));
  memory.recall(salt, conversation);
  return std::get<text::AssistantMessage>(conversation.messages.front()).replayed;
}

TEST(MessageMemory, KnowsWhatComesBackUnchanged) {
  serve::MessageMemory memory(10000);
  memory.remember("", message("hello", "why"), {}, {true, {1, 2, 3}});
  EXPECT_EQ(recalled(memory, {.content = "hello"})->ids, (std::vector<text::TokenId>{1, 2, 3}));
  EXPECT_TRUE(recalled(memory, {.content = "hello", .reasoning = "why"}));
  EXPECT_FALSE(recalled(memory, {.content = "hello", .reasoning = "other"}));
  EXPECT_FALSE(recalled(memory, {.content = "hello!"}));
  EXPECT_FALSE(recalled(memory, {.content = "hello", .prefix = true}));
  EXPECT_FALSE(recalled(memory, {.content = "hello"}, "another tenant"));
}

TEST(MessageMemory, CallsAreComparedByMeaning) {
  serve::MessageMemory memory(10000);
  text::ParsedMessage parsed = message("");
  parsed.calls.push_back({"f", R"({"x": 1, "y": "a"})", true});
  parsed.finish_reason = text::FinishReason::tool_calls;
  memory.remember("", parsed, {"call_1"}, {false, {4, 5}});
  const auto with_call = [](const std::string& id, const std::string& arguments) {
    return text::AssistantMessage{.calls = {{id, "f", arguments}}};
  };
  EXPECT_TRUE(recalled(memory, with_call("call_1", R"({"x":1,"y":"a"})")));
  EXPECT_FALSE(recalled(memory, with_call("call_2", R"({"x":1,"y":"a"})")));
  EXPECT_FALSE(recalled(memory, with_call("call_1", R"({"x":2,"y":"a"})")));
}

TEST(MessageMemory, KeepsNoMessageThatWasCut) {
  serve::MessageMemory memory(10000);
  text::ParsedMessage cut = message("cut");
  cut.finish_reason = text::FinishReason::length;
  memory.remember("", cut, {}, {false, {1}});
  text::ParsedMessage stopped = message("stopped");
  stopped.stop_sequence = "###";
  memory.remember("", stopped, {}, {false, {1}});
  EXPECT_FALSE(recalled(memory, {.content = "cut"}));
  EXPECT_FALSE(recalled(memory, {.content = "stopped"}));
}

TEST(MessageMemory, ForgetsWhatWasLongestUnused) {
  serve::MessageMemory memory(2000);
  for (int i = 0; i < 3; ++i) {
    memory.remember("", message(std::string(1, static_cast<char>('a' + i))), {},
                    {false, std::vector<text::TokenId>(150)});
    recalled(memory, {.content = "a"});
  }
  memory.remember("", message("d"), {}, {false, std::vector<text::TokenId>(150)});
  EXPECT_TRUE(recalled(memory, {.content = "a"}));
  EXPECT_FALSE(recalled(memory, {.content = "b"}));
  memory.remember("", message("big"), {}, {false, std::vector<text::TokenId>(1000)});
  EXPECT_FALSE(recalled(memory, {.content = "big"}));
}

/// The engine, with a record of what went in and what came out.
class WatchedBackend final : public serve::Backend {
 public:
  explicit WatchedBackend(serve::Backend& backend) : backend_(backend) {}

  engine::RequestId submit(engine::Request request, engine::EventSink sink) override {
    prompt = request.prompt;
    generated.clear();
    return backend_.submit(std::move(request), [this, sink = std::move(sink)](const engine::Event& event) {
      if (event.token) generated.push_back(*event.token);
      sink(event);
    });
  }
  void cancel(engine::RequestId id) override { backend_.cancel(id); }
  engine::EngineStatistics statistics() const override { return backend_.statistics(); }
  std::int64_t context() const override { return backend_.context(); }
  const text::Tokenizer& tokenizer() const override { return backend_.tokenizer(); }
  const text::SpecialTokens& specials() const override { return backend_.specials(); }

  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> generated;

 private:
  serve::Backend& backend_;
};

TEST(Replay, EachOfTenTurnsBeginsWithEveryTokenOfTheOneBefore) {
  const auto model = engine::load_model(std::string(THALWEG_SOURCE_DIR) + "/models/mini");
  engine::EngineOptions options;
  options.cache_tokens = 8192;
  engine::Engine engine(*model, options);
  serve::EngineBackend backend(*model, engine);
  WatchedBackend watched(backend);
  serve::Service service({});
  serve::HttpServerOptions http;
  http.port = 0;
  serve::HttpServer server(service, http);
  service.open(watched, {"mini", "digest", "engine"});
  HttpClient client(server.port());
  Json messages = Json::array();
  std::vector<std::int32_t> before;
  int replayed = 0;
  for (int turn = 0; turn < 10; ++turn) {
    messages.push_back(
        {{"role", "user"}, {"content", "What did the river carry in year " + std::to_string(turn) + "?"}});
    const Json body = {{"model", "deepseek-flash"},
                       {"messages", messages},
                       {"seed", turn},
                       {"thinking", {{"type", "disabled"}}},
                       {"max_tokens", 200}};
    const Json answer = client.post("/chat/completions", to_text(body)).json();
    ASSERT_TRUE(answer.contains("choices")) << answer;
    EXPECT_TRUE(watched.prompt.size() > before.size() &&
                std::equal(before.begin(), before.end(), watched.prompt.begin()))
        << "turn " << turn;
    messages.push_back({{"role", "assistant"}, {"content", answer["choices"][0]["message"]["content"]}});
    before.clear();
    // A message that ran into its limit was not ended by the model, and is encoded anew.
    if (answer["choices"][0]["finish_reason"] != "stop") break;
    before = watched.prompt;
    before.insert(before.end(), watched.generated.begin(), watched.generated.end());
    ++replayed;
  }
  EXPECT_EQ(replayed, 10);
}

}  // namespace
}  // namespace thalweg::testing
