// Requests that are no good, byte by byte, and what each is answered with.
#include "serve/service_fixture.hpp"

namespace thalweg::testing {
namespace {

struct Case {
  const char* name;
  std::string bytes;
  int status;
  std::string says;  ///< part of the message
};

std::string post(const std::string& body, const std::string& headers = "",
                 const std::string& path = kChatPath) {
  return HttpClient::request("POST", path, body, headers);
}

std::string nested(std::size_t depth) {
  return R"({"model": "deepseek-flash", "messages": )" + std::string(depth, '[') + std::string(depth, ']') +
         "}";
}

serve::HttpServerOptions small_limits() {
  serve::HttpServerOptions http;
  http.max_body = 10000;
  http.max_header = 4000;
  http.header_timeout = std::chrono::milliseconds(200);
  http.body_timeout = std::chrono::milliseconds(200);
  return http;
}

std::vector<Case> cases() {
  const std::string head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n";
  return {
      {"unknown path", HttpClient::request("POST", "/v1/nothing", "{}"), 404, "/v1/nothing"},
      {"wrong method", HttpClient::request("GET", kChatPath, ""), 405, "use POST"},
      {"unknown method", "BREW /health HTTP/1.1\r\nHost: x\r\n\r\n", 405, "BREW"},
      {"not HTTP", "hello\r\n\r\n", 400, "not a valid"},
      {"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "not a valid"},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "HTTP/1.1"},
      {"no host", "GET /health HTTP/1.1\r\n\r\n", 400, "Host"},
      {"two hosts", "GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "Host"},
      {"blank in a field name", "GET /health HTTP/1.1\r\nHo st: a\r\n\r\n", 400, "not a valid"},
      {"control character in a field", std::string("GET /health HTTP/1.1\r\nHost: a\x01\r\n\r\n"), 400,
       "not a valid"},
      {"header too large", "GET /health HTTP/1.1\r\nHost: x\r\nA: " + std::string(5000, 'a') + "\r\n\r\n",
       431, "too large"},
      {"length is no number", head + "Content-Length: ten\r\n\r\n{}", 400, "not a valid"},
      {"length is negative", head + "Content-Length: -1\r\n\r\n{}", 400, "not a valid"},
      {"length overflows", head + "Content-Length: 99999999999999999999999\r\n\r\n{}", 400, "not a valid"},
      {"two lengths", head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, "not a valid"},
      {"length and chunks", head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
       ""},
      {"unknown transfer coding", head + "Transfer-Encoding: gzip\r\n\r\n", 501, "chunked"},
      {"bad chunk", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400, "not a valid"},
      {"body announced too large", head + "Content-Length: 10001\r\n\r\n", 413, "10000"},
      {"chunks too large", head + "Transfer-Encoding: chunked\r\n\r\n2711\r\n" + std::string(10001, ' '), 413,
       "10000"},
      {"compressed body", post("{}", "Content-Encoding: gzip\r\n"), 415, "identity"},
      {"unknown expectation", post("{}", "Expect: magic\r\n"), 417, "100-continue"},
      {"empty body", HttpClient::request("POST", kChatPath, "", "Content-Length: 0\r\n"), 400, ""},
      {"not JSON", post("{\"model\": "), 400, ""},
      {"not an object", post("[1]"), 400, "object"},
      {"not UTF-8", post("{\"model\": \"\xff\"}"), 400, ""},
      {"repeated member", post(R"({"model": "a", "model": "b"})"), 400, "model"},
      {"NaN", post(chat_request(R"("temperature": NaN)")), 400, ""},
      {"too deep", post(nested(200)), 400, ""},
      {"slow head", "POST /v1/chat", 408, "too long"},
      {"slow body", head + "Content-Length: 10\r\n\r\n{", 408, "too long"},
  };
}

TEST(MalformedHttp, EachHasItsStatusAndReason) {
  RunningService running({}, small_limits());
  for (const Case& bad : cases()) {
    SCOPED_TRACE(bad.name);
    HttpClient client(running.server.port());
    ASSERT_TRUE(client.send(bad.bytes));
    const ClientReply reply = client.read_reply();
    EXPECT_EQ(reply.status, bad.status) << reply.body;
    if (reply.status == 0) continue;
    const std::string message = reply.json()["error"]["message"];
    const auto equal = [](char a, char b) { return std::tolower(a) == std::tolower(b); };
    EXPECT_FALSE(std::search(message.begin(), message.end(), bad.says.begin(), bad.says.end(), equal) ==
                     message.end() &&
                 !bad.says.empty())
        << message;
  }
}

TEST(MalformedHttp, DeepBracketsDoNotOverflowTheStack) {
  serve::HttpServerOptions http;
  RunningService running({}, http);
  EXPECT_EQ(HttpClient(running.server.port()).post(kChatPath, nested(2'000'000)).status, 400);
}

TEST(MalformedHttp, RefusedBodyIsStillAnsweredWhileItArrives) {
  RunningService running({}, small_limits());
  HttpClient client(running.server.port());
  client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n");
  client.send(std::string(1'000'000, ' '));
  EXPECT_EQ(client.read_reply().status, 413);
}

TEST(MalformedHttp, AConnectionGoesOnAfterARefusedBody) {
  RunningService running;
  HttpClient client(running.server.port());
  EXPECT_EQ(client.post(kChatPath, "{").status, 400);
  EXPECT_EQ(client.post(kChatPath, chat_request()).status, 200);
}

TEST(MalformedHttp, UnsupportedFieldsAreRefusedByName) {
  RunningService running;
  HttpClient client(running.server.port());
  const std::vector<std::pair<std::string, std::string>> bodies = {
      {chat_request(R"("logit_bias": {"1": 2})"), "logit_bias"},
      {R"({"model": "deepseek-flash", "messages": [{"role": "user", "content": [
           {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}]})",
       "messages"},
  };
  for (const auto& [body, param] : bodies) {
    SCOPED_TRACE(body);
    const ClientReply reply = client.post(kChatPath, body);
    ASSERT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json()["error"]["param"], param) << reply.body;
  }
  const ClientReply stored =
      client.post("/v1/responses", R"({"model": "deepseek-flash", "input": "q", "conversation": "conv_1"})");
  EXPECT_EQ(stored.status, 400);
  EXPECT_EQ(stored.json()["error"]["param"], "conversation");
}

}  // namespace
}  // namespace thalweg::testing
