// Connections over their life: keep-alive, pipelining, many at once, slow readers, leaving, draining.
#include <thread>

#include "serve/event_stream.hpp"
#include "serve/service_fixture.hpp"

namespace thalweg::testing {
namespace {

using namespace std::chrono_literals;

TEST(Connections, ServeManyRequestsOneAfterTheOther) {
  RunningService running;
  HttpClient client(running.server.port());
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.post(kChatPath, chat_request()).json()["choices"][0]["message"]["reasoning_content"],
              "Hi");
    EXPECT_EQ(client.get("/health").status, 200);
  }
}

TEST(Connections, PipelinedRequestsAreAnsweredInOrder) {
  RunningService running;
  HttpClient client(running.server.port());
  std::string bytes;
  for (int i = 0; i < 5; ++i) {
    bytes += HttpClient::request("POST", kChatPath, chat_request(R"("stream": true)"),
                                 "x-request-id: r" + std::to_string(i) + "\r\n");
    bytes += HttpClient::request("GET", "/health", "", "x-request-id: h" + std::to_string(i) + "\r\n");
  }
  client.send(bytes);
  for (int i = 0; i < 5; ++i) {
    const ClientReply answer = client.read_reply();
    EXPECT_EQ(answer.headers.at("x-request-id"), "r" + std::to_string(i));
    EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
    EXPECT_EQ(client.read_reply().headers.at("x-request-id"), "h" + std::to_string(i));
  }
}

TEST(Connections, OldHttpGetsAnAnswerThatEndsWithTheConnection) {
  RunningService running;
  HttpClient client(running.server.port());
  const std::string body = chat_request(R"("stream": true)");
  client.send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  const ClientReply reply = client.read_reply();
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_FALSE(reply.headers.contains("transfer-encoding"));
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
}

TEST(Connections, ContinueIsSaidBeforeTheBody) {
  RunningService running;
  HttpClient client(running.server.port());
  const std::string body = chat_request();
  client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(client.read_reply(false).status, 100);
  client.send(body);
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST(Connections, HeadHasNoBody) {
  RunningService running;
  HttpClient client(running.server.port());
  client.send(HttpClient::request("HEAD", "/", ""));
  EXPECT_EQ(client.read_reply(false).status, 200);
  EXPECT_EQ(client.get("/health").status, 200);
}

TEST(Connections, SignsOfLifeWhileNothingComes) {
  serve::HttpServerOptions http;
  http.keep_alive = 20ms;
  RunningService running({}, http);
  running.backend.hold(true);
  HttpClient stream(running.server.port());
  HttpClient whole(running.server.port());
  stream.send(HttpClient::request("POST", kChatPath, chat_request(R"("stream": true)")));
  whole.send(HttpClient::request("POST", kChatPath, chat_request()));
  EXPECT_TRUE(stream.read_until(": keep-alive\n\n"));
  EXPECT_TRUE(whole.read_until("\r\n1\r\n\n\r\n"));
  running.backend.hold(false);
  EXPECT_TRUE(stream.read_reply().body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(whole.read_reply().json()["object"], "chat.completion");
}

TEST(Connections, AClientThatLeavesFreesItsRequestInEveryState) {
  RunningService running({}, {}, 1ms);
  running.backend.play(endless());
  running.backend.hold(true);
  const auto start = [&](const std::string& more) {
    auto client = std::make_unique<HttpClient>(running.server.port());
    client->send(HttpClient::request("POST", kChatPath, chat_request(more)));
    return client;
  };
  auto queued = start("\"stream\": true");
  queued->read_until("\r\n\r\n");
  queued->close();
  running.backend.wait_until_idle();

  running.backend.hold(false);
  auto streaming = start("\"stream\": true");
  streaming->read_until("reasoning_content");
  streaming->close();
  auto whole = start("");
  while (running.backend.statistics().admitted < 3) std::this_thread::sleep_for(1ms);
  whole->close();
  running.backend.wait_until_idle();

  running.backend.play(
      {{"prompt_tokens", 5}, {"prompt_cache_hit_tokens", 0}, {"chunks", {"a"}}, {"finish", "stop"}});
  auto finished = start("\"stream\": true");
  finished->read_until("[DONE]");
  finished->close();
  const engine::EngineStatistics statistics = running.backend.statistics();
  EXPECT_EQ(statistics.aborted, 3u);
  EXPECT_EQ(statistics.finished, 1u);
  EXPECT_EQ(running.service.metrics().disconnects.load(), 3u);
}

TEST(Connections, ASlowReaderIsCutAtItsLimitAndFreesItsRequest) {
  serve::ServiceOptions options;
  options.max_unread = 100'000;
  RunningService running(std::move(options));
  running.backend.play(endless(std::string(1000, 'x')));
  HttpClient client(running.server.port(), 4096);
  client.send(HttpClient::request("POST", kChatPath, chat_request(R"("stream": true)")));
  client.read_until("reasoning_content");
  running.backend.wait_until_idle();
  EXPECT_EQ(running.service.metrics().slow_readers.load(), 1u);
}

TEST(Connections, ManyStreamsAtOnce) {
  RunningService running({}, {}, 2ms);
  Json recording = {
      {"prompt_tokens", 5}, {"prompt_cache_hit_tokens", 0}, {"chunks", Json::array()}, {"finish", "stop"}};
  for (int i = 0; i < 30; ++i) recording["chunks"].push_back("word ");
  running.backend.play(recording);
  running.backend.hold(true);
  constexpr int kStreams = 400;
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<HttpClient>(running.server.port()));
    clients.back()->send(HttpClient::request("POST", kChatPath, chat_request(R"("stream": true)")));
  }
  while (running.backend.statistics().admitted < kStreams) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(running.service.metrics().open_answers.load(), kStreams);
  running.backend.hold(false);
  for (const auto& client : clients) {
    const ClientReply reply = client->read_reply();
    EXPECT_EQ(reply.status, 200);
    const Json events = comparable(reply.body, "", "");
    ASSERT_EQ(events.size(), 4u) << reply.body;
    std::string expected;
    for (int i = 0; i < 30; ++i) expected += "word ";
    EXPECT_EQ(events[1]["data"]["choices"][0]["delta"]["reasoning_content"], expected);
  }
}

TEST(Connections, OverTheLimitAreTurnedAway) {
  serve::HttpServerOptions http;
  http.max_connections = 2;
  RunningService running({}, http);
  HttpClient first(running.server.port());
  HttpClient second(running.server.port());
  EXPECT_EQ(first.get("/health").status, 200);
  EXPECT_EQ(second.get("/health").status, 200);
  EXPECT_EQ(HttpClient(running.server.port()).read_reply().status, 503);
}

TEST(Drain, FinishesAnswersAndRefusesNewOnes) {
  RunningService running({}, {}, 1ms);
  Json recording = {
      {"prompt_tokens", 5}, {"prompt_cache_hit_tokens", 0}, {"chunks", Json::array()}, {"finish", "stop"}};
  for (int i = 0; i < 20; ++i) recording["chunks"].push_back("a");
  running.backend.play(recording);
  running.backend.hold(true);
  HttpClient idle(running.server.port());
  idle.get("/health");
  HttpClient client(running.server.port());
  client.send(HttpClient::request("POST", kChatPath, chat_request(R"("stream": true)")));
  client.read_until("\r\n\r\n");
  std::thread drain([&] { EXPECT_TRUE(running.server.drain(20s)); });
  EXPECT_TRUE(idle.read_to_end());
  running.backend.hold(false);
  EXPECT_TRUE(client.read_reply().body.ends_with("data: [DONE]\n\n"));
  EXPECT_TRUE(client.read_to_end());
  drain.join();
  EXPECT_THROW(HttpClient(running.server.port()), std::runtime_error);
}

TEST(Drain, CutsWhatDoesNotFinishInTimeAndSaysSo) {
  RunningService running({}, {}, 1ms);
  running.backend.play(endless());
  const auto start = [&](const std::string& path, const std::string& body) {
    auto client = std::make_unique<HttpClient>(running.server.port());
    client->send(HttpClient::request("POST", path, body));
    return client;
  };
  const auto chat = start(kChatPath, chat_request(R"("stream": true)"));
  const auto whole = start(kChatPath, chat_request());
  const auto messages = start("/v1/messages", R"({"model": "claude-x", "max_tokens": 9, "stream": true,
                                                  "messages": [{"role": "user", "content": "q"}]})");
  const auto responses =
      start("/v1/responses", R"({"model": "deepseek-flash", "input": "q", "stream": true})");
  while (running.backend.statistics().admitted < 4) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(running.server.drain(50ms));
  EXPECT_NE(chat->read_reply().body.find("\"finish_reason\":\"insufficient_system_resource\""),
            std::string::npos);
  EXPECT_EQ(whole->read_reply().status, 503);
  EXPECT_NE(messages->read_reply().body.find("event: error\n"), std::string::npos);
  EXPECT_NE(responses->read_reply().body.find("event: response.failed\n"), std::string::npos);
  EXPECT_EQ(running.backend.statistics().aborted, 4u);
}

}  // namespace
}  // namespace thalweg::testing
