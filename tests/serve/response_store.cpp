// Responses kept on the server: bounds, owners, continuation by id, retrieval and deletion.
#include "serve/response_store.hpp"

#include "serve/event_stream.hpp"
#include "serve/service_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::testing {
namespace {

using namespace std::chrono_literals;
using serve::ResponseStore;

const ResponseStore::Time kStart{};

Json response(const std::string& id, const std::string& text = "answer") {
  return {{"id", id}, {"output", {{{"type", "message"}, {"role", "assistant"}, {"content", text}}}}};
}

TEST(ResponseStore, AConversationIsTheTurnsThatLedToIt) {
  ResponseStore store({});
  store.add("", response("r1", "a1"), {}, "\"q1\"", kStart);
  const auto first = store.turns("", "r1", kStart);
  ASSERT_TRUE(first);
  store.add("", response("r2", "a2"), *first, R"([{"role": "user", "content": "q2"}])", kStart);
  store.add("", response("r3", "a3"), *first, "", kStart);
  const auto texts = [&](const std::string& id) {
    std::vector<std::string> list;
    for (const Json& item : ResponseStore::items_of(*store.turns("", id, kStart)))
      list.push_back(item["content"]);
    return list;
  };
  EXPECT_EQ(texts("r2"), (std::vector<std::string>{"q1", "a1", "q2", "a2"}));
  EXPECT_EQ(texts("r3"), (std::vector<std::string>{"q1", "a1", "a3"}));
  EXPECT_TRUE(store.erase("", "r1", kStart));
  EXPECT_EQ(texts("r2").size(), 4u) << "what continues a response does not need it";
}

TEST(ResponseStore, BelongsToItsOwner) {
  ResponseStore store({});
  store.add("alpha", response("r1"), {}, "", kStart);
  EXPECT_FALSE(store.turns("beta", "r1", kStart));
  EXPECT_FALSE(store.find("beta", "r1", kStart));
  EXPECT_FALSE(store.erase("beta", "r1", kStart));
  EXPECT_TRUE(store.find("alpha", "r1", kStart));
}

TEST(ResponseStore, TheOldestGoesFirst) {
  ResponseStore store({.count = 2});
  for (const char* id : {"r1", "r2", "r3"}) store.add("", response(id), {}, "", kStart);
  EXPECT_EQ(store.count(), 2u);
  EXPECT_FALSE(store.find("", "r1", kStart));
  EXPECT_TRUE(store.find("", "r3", kStart));
}

TEST(ResponseStore, KeepsToItsBytesAndCountsSharedTurnsOnce) {
  constexpr std::size_t kBytes = 200'000;
  ResponseStore store({.count = 1000, .bytes = kBytes});
  ResponseStore::Turns turns;
  for (int i = 0; i < 50; ++i) {
    store.add("", response("r" + std::to_string(i)), turns, Json(std::string(1000, 'x')).dump(), kStart);
    ASSERT_LE(store.bytes(), kBytes);
    turns = *store.turns("", "r" + std::to_string(i), kStart);
  }
  EXPECT_EQ(store.count(), 50u) << "copies of all turns would need 1.3 MB";
  for (int i = 0; i < 500; ++i) {
    store.add("", response("s" + std::to_string(i)), {}, Json(std::string(1000, 'x')).dump(), kStart);
    turns.clear();
    ASSERT_LE(store.bytes(), kBytes);
  }
  EXPECT_FALSE(store.find("", "r49", kStart));
  store.add("", response("big"), {}, std::string(kBytes, 'x'), kStart);
  EXPECT_FALSE(store.find("", "big", kStart));
  for (int i = 0; i < 500; ++i) store.erase("", "s" + std::to_string(i), kStart);
  EXPECT_EQ(store.count(), 0u);
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(ResponseStore, ForgetsWhatIsTooOld) {
  ResponseStore store({.age = 10s});
  store.add("", response("r1"), {}, "", kStart);
  EXPECT_TRUE(store.find("", "r1", kStart + 9s));
  EXPECT_FALSE(store.find("", "r1", kStart + 10s));
  EXPECT_EQ(store.bytes(), 0u);
}

std::string ask(const std::string& more) {
  return R"({"model": "deepseek-flash", "reasoning": {"effort": "none"}, )" + more + "}";
}

std::string continued(const Json& previous, const std::string& more = R"("input": "next")") {
  return ask(R"("previous_response_id": )" + to_text(previous["id"]) + ", " + more);
}

std::string prompt_of(const RunningService& running) {
  return running.backend.tokenizer().decode(running.backend.last_request().prompt);
}

class StoredResponses : public ::testing::Test {
 protected:
  // Recordings have text without ids, so none can be replayed.
  RunningService running{{.remembered = 0}};
  HttpClient client{running.server.port()};

  Json post(const std::string& body) { return client.post("/v1/responses", body).json(); }
};

TEST_F(StoredResponses, AreContinuedByTheirId) {
  const Json first = post(ask(R"("input": "q1", "instructions": "I1")"));
  EXPECT_EQ(first["store"], true);
  EXPECT_EQ(first["previous_response_id"], nullptr);
  const Json second = post(continued(first, R"("input": [{"role": "user", "content": "q2"}])"));
  EXPECT_EQ(second["previous_response_id"], first["id"]);
  EXPECT_EQ(prompt_of(running),
            "<｜begin▁of▁sentence｜><｜User｜>q1<｜Assistant｜></think>Hi<｜end▁of▁sentence｜>"
            "<｜User｜>q2<｜Assistant｜></think>")
      << "instructions are those of the request alone";
  post(continued(second, R"("input": "q3", "instructions": "I3")"));
  EXPECT_EQ(prompt_of(running),
            "<｜begin▁of▁sentence｜><｜System｜>I3<｜User｜>q1<｜Assistant｜></think>Hi<｜end▁of▁sentence｜>"
            "<｜User｜>q2<｜Assistant｜></think>Hi<｜end▁of▁sentence｜><｜User｜>q3<｜Assistant｜></think>");
}

TEST_F(StoredResponses, CallsAreAnsweredWithoutSendingThemBack) {
  const std::string tools = R"("tools": [{"type": "function", "name": "f"}])";
  running.backend.play(
      {{"prompt_tokens", 5},
       {"prompt_cache_hit_tokens", 0},
       {"chunks",
        {"\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"x\" "
         "string=\"true\">1</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>"}},
       {"finish", "stop"}});
  const Json first = post(ask(R"("input": "q", )" + tools));
  ASSERT_EQ(first["output"][0]["type"], "function_call") << first;
  const std::string call_id = first["output"][0]["call_id"];
  post(continued(first, R"("input": [{"type": "function_call_output", "output": "ok", "call_id": ")" +
                            call_id + "\"}], " + tools));
  EXPECT_NE(prompt_of(running).find(
                "</｜DSML｜ calls><｜end▁of▁sentence｜><｜User｜><tool_result>ok</tool_result>"),
            std::string::npos)
      << prompt_of(running);
  const ClientReply unanswered = client.post("/v1/responses", continued(first));
  EXPECT_EQ(unanswered.status, 400);
  EXPECT_EQ(unanswered.json()["error"]["message"], "No tool output found for tool call " + call_id + ".");
}

TEST_F(StoredResponses, StreamsAreKeptToo) {
  const std::string stream = client.post("/v1/responses", ask(R"("input": "q", "stream": true)")).body;
  const Json last = parse_events(stream).back().data["response"];
  EXPECT_EQ(client.get("/v1/responses/" + last["id"].get<std::string>()).json(), last);
}

TEST_F(StoredResponses, CanBeReadAndDeleted) {
  const Json first = post(ask(R"("input": "q")"));
  const std::string path = "/v1/responses/" + first["id"].get<std::string>();
  EXPECT_EQ(client.get(path).json(), first);
  EXPECT_EQ(client.get(path + "?stream=true").status, 400);
  client.send(HttpClient::request("DELETE", path, ""));
  const ClientReply deleted = client.read_reply();
  EXPECT_EQ(deleted.json(), Json({{"id", first["id"]}, {"object", "response"}, {"deleted", true}}));
  EXPECT_EQ(client.get(path).status, 404);
  EXPECT_EQ(client.get(path).json()["error"]["type"], "not_found_error");
  EXPECT_EQ(client.post(path, "{}").headers.at("allow"), "GET, HEAD, DELETE");
}

TEST_F(StoredResponses, UnknownIdsAre404InTheFormOfTheApi) {
  const ClientReply reply = client.post("/v1/responses", continued({{"id", "resp_nobody"}}));
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.json(), Json({{"error",
                                 {{"message", "No response with the id 'resp_nobody' is kept."},
                                  {"type", "not_found_error"},
                                  {"param", "previous_response_id"},
                                  {"code", "previous_response_not_found"}}}}));
  EXPECT_EQ(client.post("/v1/responses", continued({{"id", 5}})).status, 400);
}

TEST_F(StoredResponses, NothingIsKeptAgainstTheWishOfTheClient) {
  const Json first = post(ask(R"("input": "q", "store": false)"));
  EXPECT_EQ(first["store"], false);
  EXPECT_EQ(client.post("/v1/responses", continued(first)).status, 404);
  // It may still continue what was kept.
  const Json kept = post(ask(R"("input": "q")"));
  EXPECT_EQ(post(continued(kept, R"("input": "q2", "store": false)"))["status"], "completed");
}

TEST_F(StoredResponses, AnswersNobodyWaitedForAreNotKept) {
  running.backend.play(endless());
  HttpClient leaving(running.server.port());
  leaving.send(HttpClient::request("POST", "/v1/responses", ask(R"("input": "q", "stream": true)")));
  leaving.read_until("response.output_text.delta");
  leaving.close();
  running.backend.wait_until_idle();
  EXPECT_NE(client.get("/metrics").body.find("\nthalweg_stored_responses 0\n"), std::string::npos);
}

TEST(StoredResponsesOff, TheServiceSaysSo) {
  RunningService running({.responses = {.count = 0}});
  HttpClient client(running.server.port());
  const ClientReply first = client.post("/v1/responses", ask(R"("input": "q", "store": true)"));
  EXPECT_EQ(first.json()["store"], false);
  EXPECT_EQ(first.headers.at("x-ignored-fields"), "store");
  EXPECT_EQ(client.post("/v1/responses", continued(first.json())).status, 404);
}

TEST(StoredResponsesExpire, AfterTheirTime) {
  RunningService running({.responses = {.age = 1ms}});
  HttpClient client(running.server.port());
  const Json first = client.post("/v1/responses", ask(R"("input": "q")")).json();
  std::this_thread::sleep_for(2ms);
  EXPECT_EQ(client.post("/v1/responses", continued(first)).status, 404);
}

TEST(StoredResponsesOfKeys, AreUnknownToOthers) {
  TemporaryFolder folder;
  serve::ServiceOptions options;
  options.keys = serve::ApiKeys::read(folder.write("keys", "alpha\nbeta\n"));
  RunningService running(std::move(options));
  HttpClient client(running.server.port());
  const std::string alpha = "Authorization: Bearer alpha\r\n";
  const std::string beta = "Authorization: Bearer beta\r\n";
  const Json first = client.post("/v1/responses", ask(R"("input": "q")"), alpha).json();
  EXPECT_EQ(client.post("/v1/responses", continued(first), beta).status, 404);
  EXPECT_EQ(client.get("/v1/responses/" + first["id"].get<std::string>(), beta).status, 404);
  EXPECT_EQ(client.post("/v1/responses", continued(first), alpha).status, 200);
}

}  // namespace
}  // namespace thalweg::testing
