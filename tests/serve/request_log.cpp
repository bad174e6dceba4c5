// The request log says of every request what became of it, and nothing that was said.
#include <gtest/gtest.h>

#include <sstream>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "serve/request_log.hpp"
#include "service_fixture.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::testing {
namespace {

constexpr const char* kTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

std::vector<Json> lines_of(const std::string& file) {
  std::vector<Json> lines;
  std::istringstream text(read_text_file(file));
  for (std::string line; std::getline(text, line);) lines.push_back(parse_json(line, file));
  return lines;
}

TEST(RequestLog, HasALineForEveryRequestServedOrRefused) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "requests.jsonl").string();
  {
    serve::ServiceOptions options;
    options.request_log = file;
    RunningService running(std::move(options));
    HttpClient client(running.server.port());
    const std::string trace = std::string("traceparent: ") + kTrace + "\r\n";
    EXPECT_EQ(
        client.post(kChatPath, chat_request(), "x-request-id: one\r\n" + trace).headers.at("traceparent"),
        kTrace);
    client.post(kChatPath, chat_request(R"("stream": true)"), "x-request-id: two\r\n");
    client.post(kChatPath, "{", "x-request-id: three\r\ntraceparent: nonsense\r\n");
    client.get("/health");
  }
  const std::vector<Json> lines = lines_of(file);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["id"], "one");
  EXPECT_EQ(lines[0]["endpoint"], "chat_completions");
  EXPECT_EQ(lines[0]["status"], 200);
  EXPECT_EQ(lines[0]["stream"], false);
  EXPECT_EQ(lines[0]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(lines[0]["parent_span_id"], "00f067aa0ba902b7");
  EXPECT_GT(lines[0]["prompt_tokens"], 0);
  EXPECT_GT(lines[0]["output_tokens"], 0);
  EXPECT_GE(lines[0]["seconds"], lines[0]["first_token_seconds"]);
  EXPECT_EQ(lines[1]["stream"], true);
  EXPECT_EQ(lines[2]["status"], 400);
  EXPECT_TRUE(lines[2].contains("error"));
  EXPECT_FALSE(lines[2].contains("trace_id"));
}

TEST(RequestLog, OfAFolderIsRefusedAtTheStart) {
  const TemporaryFolder folder;
  EXPECT_THROW(serve::RequestLog(folder.path().string()), WorkError);
}

TEST(RequestLog, OnAFullDiskHarmsNoRequest) {
  serve::ServiceOptions options;
  options.request_log = "/dev/full";
  RunningService running(std::move(options));
  HttpClient client(running.server.port());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.post(kChatPath, chat_request()).status, 200);
}

TEST(TraceParent, IsReadAsTheStandardSays) {
  const auto parsed = serve::parse_traceparent(kTrace);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(parsed->span_id, "00f067aa0ba902b7");
  EXPECT_TRUE(serve::parse_traceparent(
      "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future-brings"));
  for (const char* wrong : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
                            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more"}) {
    EXPECT_FALSE(serve::parse_traceparent(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace thalweg::testing
