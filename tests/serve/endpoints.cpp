// The endpoints that do not generate, start-up, keys, headers, Completions.
#include "serve/service_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::testing {
namespace {

TEST(Endpoints, StartUpShowsItsPhaseAndRefusesWork) {
  serve::Service service({});
  serve::HttpServer server(service, RunningService::any_port({}));
  service.loading("reading weights", 3, 10);
  HttpClient client(server.port());
  EXPECT_EQ(client.get("/health").status, 200);
  const ClientReply loading = client.get("/ready");
  EXPECT_EQ(loading.status, 503);
  EXPECT_EQ(loading.json(),
            Json({{"status", "loading"}, {"phase", "reading weights"}, {"done", 3}, {"total", 10}}));
  const ClientReply refused = client.post(kChatPath, chat_request());
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
  RecordedBackend backend;
  HttpClient again(server.port());
  service.open(backend, {"m", "d", "e"});
  EXPECT_EQ(again.get("/ready").status, 200);
  EXPECT_EQ(again.post(kChatPath, chat_request()).status, 200);
}

TEST(Endpoints, TokenizeAndBack) {
  RunningService running;
  HttpClient client(running.server.port());
  EXPECT_EQ(client.post("/tokenize", R"({"text": "Hello"})").json(),
            Json({{"ids", {0, 19923}}, {"count", 2}}));
  EXPECT_EQ(
      client.post("/tokenize", R"({"text": "Hello", "add_special_tokens": false, "return_pieces": true})")
          .json(),
      Json({{"ids", {19923}}, {"count", 1}, {"pieces", {"Hello"}}}));
  EXPECT_EQ(client.post("/tokenize", R"({"text": "</think>", "add_special_tokens": false})").json()["ids"],
            Json({128822}));
  EXPECT_EQ(client.post("/tokenize", R"({"text": "</think>", "parse_special": false})").json()["count"], 4);
  const Json chat = client
                        .post("/tokenize", R"({"messages": [{"role": "user", "content": "Hello"}],
                                                 "thinking": {"type": "disabled"}})")
                        .json();
  EXPECT_EQ(chat["ids"], Json({0, 128803, 19923, 128804, 128822}));
  EXPECT_EQ(client.post("/detokenize", R"({"ids": [19923, 678]})").json()["text"], "Hello me");
  EXPECT_EQ(client.post("/detokenize", R"({"ids": [999999]})").status, 400);
  EXPECT_EQ(client.post("/tokenize", R"({"txt": "a"})").status, 400);
}

TEST(Endpoints, CountTokens) {
  RunningService running;
  HttpClient client(running.server.port());
  const ClientReply reply =
      client.post("/v1/messages/count_tokens?beta=true",
                  R"({"model": "claude-x", "messages": [{"role": "user", "content": "Hello"}]})");
  EXPECT_EQ(reply.json(), Json({{"input_tokens", 31}})) << reply.body;
}

TEST(Endpoints, Models) {
  RunningService running;
  HttpClient client(running.server.port());
  const Json list = client.get("/v1/models").json();
  EXPECT_EQ(list["data"][0]["id"], "DeepSeek-V4.1-Flash");
  EXPECT_EQ(list["data"][0]["context_length"], 1048576);
  EXPECT_EQ(client.get("/v1/models/deepseek-flash").json()["id"], "deepseek-flash");
  EXPECT_EQ(client.get("/v1/models/gpt").status, 404);
}

TEST(Endpoints, MetricsAgreeWithTheEngine) {
  RunningService running;
  HttpClient client(running.server.port());
  for (int i = 0; i < 3; ++i) client.post(kChatPath, chat_request());
  client.post(kChatPath, "{");
  const std::string page = client.get("/metrics").body;
  const auto has = [&](const std::string& line) {
    return page.find("\n" + line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("thalweg_http_requests_total{endpoint=\"chat_completions\",status=\"200\"} 3")) << page;
  EXPECT_TRUE(has("thalweg_http_requests_total{endpoint=\"chat_completions\",status=\"400\"} 1"));
  EXPECT_TRUE(has("thalweg_engine_requests_admitted_total 3"));
  EXPECT_TRUE(has("thalweg_engine_requests_finished_total 3"));
  EXPECT_TRUE(has("thalweg_reasoning_tokens_total 3"));
  EXPECT_TRUE(has("thalweg_http_open_answers 0"));
  EXPECT_TRUE(has("thalweg_request_duration_seconds_count 3"));
}

TEST(Endpoints, ThePageComesWholeAndNamesNoOtherHost) {
  RunningService running;
  const ClientReply reply = HttpClient(running.server.port()).get("/");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_TRUE(reply.headers.at("content-security-policy").starts_with("default-src 'none'; "));
  EXPECT_TRUE(reply.body.starts_with("<!doctype html>"));
  EXPECT_TRUE(reply.body.ends_with("</html>\n"));
  for (const char* outside : {"http://", "https://", "//cdn", "@import", "innerHTML"}) {
    EXPECT_EQ(reply.body.find(outside), std::string::npos) << outside;
  }
}

TEST(Endpoints, IgnoredFieldsAndRequestIdsComeBack) {
  RunningService running;
  HttpClient client(running.server.port());
  const ClientReply reply = client.post(kChatPath, chat_request(R"("user": "u", "service_tier": "auto")"),
                                        "x-request-id: mine\r\n");
  EXPECT_EQ(reply.headers.at("x-ignored-fields"), "service_tier, user");
  EXPECT_EQ(reply.headers.at("x-request-id"), "mine");
  EXPECT_EQ(reply.headers.at("request-id"), "mine");
}

TEST(Endpoints, FullQueueIs429) {
  serve::ServiceOptions options;
  options.max_waiting = 1;
  RunningService running(std::move(options));
  running.backend.hold(true);
  HttpClient first(running.server.port());
  first.send(HttpClient::request("POST", kChatPath, chat_request(R"("stream": true)")));
  first.read_until("\r\n\r\n");
  const ClientReply refused = HttpClient(running.server.port()).post(kChatPath, chat_request());
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.json()["error"]["type"], "rate_limit_error");
  EXPECT_EQ(refused.headers.at("retry-after"), "1");
}

TEST(Endpoints, PreflightIsAnsweredIfAsked) {
  serve::ServiceOptions options;
  options.cors_origin = "*";
  RunningService running(std::move(options));
  HttpClient client(running.server.port());
  client.send(HttpClient::request("OPTIONS", kChatPath, ""));
  const ClientReply reply = client.read_reply(false);
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.headers.at("access-control-allow-origin"), "*");
}

class Keys : public ::testing::Test {
 protected:
  Keys() : running(options()) {}

  serve::ServiceOptions options() {
    serve::ServiceOptions service;
    service.keys = serve::ApiKeys::read(folder.write("keys", "# people\nalpha\n\nbeta\n"));
    return service;
  }

  TemporaryFolder folder;
  RunningService running;
};

TEST_F(Keys, AreAskedForExceptBySignsOfHealth) {
  HttpClient client(running.server.port());
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_EQ(client.get("/ready").status, 200);
  const ClientReply refused = client.get("/v1/models");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.json()["error"]["type"], "authentication_error");
  EXPECT_EQ(client.get("/v1/models", "Authorization: Bearer beta\r\n").status, 200);
  EXPECT_EQ(client.get("/v1/models", "Authorization: Bearer bet\r\n").status, 401);
  EXPECT_EQ(client.get("/v1/models", "Authorization: beta\r\n").status, 401);
  EXPECT_EQ(client.get("/v1/models", "x-api-key: alpha\r\n").status, 200);
  EXPECT_EQ(client.get("/v1/models", "Authorization: Bearer no\r\nx-api-key: alpha\r\n").status, 401);
}

TEST_F(Keys, SeparateTheCachesOfTheirOwners) {
  HttpClient client(running.server.port());
  client.post(kChatPath, chat_request(), "Authorization: Bearer alpha\r\n");
  const std::string alpha = running.backend.last_request().cache_salt;
  client.post(kChatPath, chat_request(), "Authorization: Bearer beta\r\n");
  EXPECT_NE(running.backend.last_request().cache_salt, alpha);
  EXPECT_FALSE(alpha.empty());
}

TEST(KeyFiles, FaultsAreNamedWithTheirLine) {
  TemporaryFolder folder;
  const auto fault = [&](const std::string& content) -> std::string {
    try {
      serve::ApiKeys::read(folder.write("keys", content));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(fault("a b\n").find("keys:1"), std::string::npos);
  EXPECT_NE(fault("a\nb\na\n").find("keys:3"), std::string::npos);
  EXPECT_NE(fault("# none\n").find("at least one key"), std::string::npos);
}

TEST(Completions, ContinueRawPrompts) {
  RunningService running;
  HttpClient client(running.server.port());
  const Json whole =
      client.post("/v1/completions", R"({"model": "deepseek-flash", "prompt": "Hello", "echo": true})")
          .json();
  EXPECT_EQ(whole["object"], "text_completion");
  EXPECT_EQ(whole["choices"][0]["text"], "HelloHi");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(running.backend.last_request().prompt, (std::vector<std::int32_t>{0, 19923}));
  EXPECT_EQ(running.backend.last_request().sampling.max_tokens, 16);
  client.post("/beta/completions",
              R"({"model": "deepseek-flash", "prompt": "a", "suffix": "b", "max_tokens": 3})");
  EXPECT_EQ(running.backend.last_request().prompt.size(), 6u);
  client.post("/v1/completions",
              R"({"model": "deepseek-flash", "prompt": [5, 6], "temperature": 0, "stop": ["x"]})");
  EXPECT_EQ(running.backend.last_request().prompt, (std::vector<std::int32_t>{5, 6}));
  EXPECT_TRUE(running.backend.last_request().sampling.is_greedy());
  const std::string stream =
      client.post("/v1/completions", R"({"model": "deepseek-flash", "prompt": "a", "stream": true})").body;
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n"));
}

TEST(Completions, FaultsNameTheirField) {
  RunningService running;
  HttpClient client(running.server.port());
  const std::vector<std::pair<std::string, std::string>> faults = {
      {R"("prompt": 1)", "prompt"},
      {R"("prompt": [])", "prompt"},
      {R"("prompt": [1, -1])", "prompt[1]"},
      {R"("prompt": ["a", "b"])", "prompt"},
      {R"("prompt": "a", "max_tokens": 0)", "max_tokens"},
      {R"("prompt": "a", "best_of": 2)", "best_of"},
      {R"("prompt": "a", "logit_bias": {"x": 1})", "logit_bias.x"},
      {R"("prompt": "a", "echo": true, "logprobs": 1)", "echo"},
      {R"("prompt": "a", "stream_options": {})", "stream_options"},
  };
  for (const auto& [members, param] : faults) {
    const ClientReply reply =
        client.post("/v1/completions", R"({"model": "deepseek-flash", )" + members + "}");
    EXPECT_EQ(reply.status, 400) << members;
    EXPECT_EQ(reply.json()["error"]["param"], param) << reply.body;
  }
}

}  // namespace
}  // namespace thalweg::testing
