// The cases of protocol.json and requests.json through a socket.
#include "serve/event_stream.hpp"
#include "serve/service_fixture.hpp"

namespace thalweg::testing {
namespace {

const Json& protocol_file() {
  static const Json file = api_cases("protocol.json");
  return file;
}

const Json& requests_file() {
  static const Json file = api_cases("requests.json");
  return file;
}

std::string path_of_api(const std::string& api) {
  return api == "chat" ? "/v1/chat/completions" : "/v1/" + api;
}

std::string bytes_from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string id_in(const Json& event) {
  if (event.contains("response")) return event["response"]["id"];
  if (event.contains("message")) return event["message"]["id"];
  return event["id"];
}

// The recordings are of a service that keeps no responses.
serve::ServiceOptions without_state() {
  serve::ServiceOptions options;
  options.responses.count = 0;
  return options;
}

TEST(GoldenHttp, StreamsAreAsRecorded) {
  RunningService running(without_state());
  HttpClient client(running.server.port());
  for (const Json& golden : protocol_file()["cases"]) {
    if (!golden.contains("sse")) continue;
    SCOPED_TRACE(golden["name"].get<std::string>());
    running.backend.play(golden["backend"]);
    const ClientReply reply = client.post(path_of_api(golden["api"]), to_text(golden["request"]));
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.headers.at("content-type"), "text/event-stream; charset=utf-8");
    const std::string own_id = id_in(parse_events(reply.body).front().data);
    const Json stream = comparable(reply.body, own_id, golden["response_id"]);
    ASSERT_EQ(stream.size(), golden["sse"].size()) << stream;
    for (std::size_t i = 0; i < stream.size(); ++i) {
      EXPECT_EQ(unordered(stream[i]), unordered(golden["sse"][i])) << i;
    }
  }
}

TEST(GoldenHttp, WholeAnswersAreAsRecorded) {
  RunningService running(without_state());
  HttpClient client(running.server.port());
  for (const Json& golden : protocol_file()["cases"]) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    running.backend.play(golden["backend"]);
    Json request = golden["request"];
    request.erase("stream");
    request.erase("stream_options");
    const ClientReply reply = client.post(path_of_api(golden["api"]), to_text(request));
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(unordered(normalized(reply.json(), golden["response_id"])), unordered(golden["response"]));
  }
}

TEST(GoldenHttp, RefusalsHaveStatusWordsAndShape) {
  RunningService running;
  HttpClient client(running.server.port());
  for (const Json& golden : requests_file()["rejected"]) {
    const std::string name = golden["name"];
    SCOPED_TRACE(name);
    const std::string api = golden["api"];
    const ClientReply reply = client.post(path_of_api(api), to_text(golden["request"]));
    ASSERT_EQ(reply.status, golden["status"].get<int>()) << reply.body;
    const Json body = reply.json();
    EXPECT_EQ(body["error"]["type"], "invalid_request_error");
    if (api == "messages") {
      EXPECT_EQ(body["type"], "error");
      EXPECT_EQ(body["request_id"], reply.headers.at("request-id"));
    } else {
      EXPECT_EQ(body["error"]["code"], "invalid_request_error");
    }
    // The reference names the id it did not expect; ours names the call that has no result.
    if (name == "wrong tool call id") continue;
    const std::string message = body["error"]["message"];
    const std::string expected = golden["error"]["message"];
    EXPECT_TRUE(golden.contains("message_prefix")
                    ? message.starts_with(golden["message_prefix"].get<std::string>())
                    : message == expected)
        << message;
  }
}

TEST(GoldenHttp, MalformedBodiesAre400) {
  RunningService running;
  HttpClient client(running.server.port());
  for (const Json& golden : requests_file()["malformed"]) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    const bool hex = golden.contains("body_hex");
    const std::string body = hex ? bytes_from_hex(golden["body_hex"]) : golden["body"].get<std::string>();
    const ClientReply reply = client.post(path_of_api(golden["api"]), body);
    EXPECT_EQ(reply.status, 400) << reply.body;
  }
}

}  // namespace
}  // namespace thalweg::testing
