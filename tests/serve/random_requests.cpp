// Random requests of every API, good and bad, whole and cut anywhere, from clients that stay or leave: in the
// end nothing is left behind. THALWEG_RANDOM_REQUESTS sets their number for long runs.
#include <dirent.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "serve/http_client.hpp"
#include "serve/http_server.hpp"

namespace thalweg::testing {
namespace {

using namespace std::chrono_literals;

class Requests {
 public:
  explicit Requests(unsigned seed) : random_(seed) {}

  bool one_in(int n) { return below(n) == 0; }
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  std::string next() {
    Json body = {{"model", "deepseek-flash"}, {"stream", one_in(2)}};
    const Json user = Json::array({{{"role", "user"}, {"content", words()}}});
    std::string path = "/v1/chat/completions";
    const char* limit = "max_tokens";
    switch (below(4)) {
      case 0:
        path = "/v1/responses";
        limit = "max_output_tokens";
        body["input"] = words();
        body["store"] = one_in(2);
        break;
      case 1:
        path = "/v1/messages";
        body["messages"] = user;
        break;
      case 2:
        path = "/v1/completions";
        body["prompt"] = words();
        if (one_in(3)) body["n"] = 1 + below(3);
        if (one_in(4)) body["logprobs"] = below(4);
        break;
      default:
        body["messages"] = user;
        if (one_in(4)) body["stop"] = "e";
        break;
    }
    body[limit] = 1 + below(one_in(5) ? 60 : 6);
    if (one_in(8)) body["temperature"] = below(5);  // 3 and 4 are refused
    if (one_in(3)) body["tools"] = one_in(2) ? Json::array() : Json(5);
    std::string text = to_text(body);
    if (one_in(6))
      text[static_cast<std::size_t>(below(static_cast<int>(text.size())))] = static_cast<char>(below(256));
    return HttpClient::request("POST", path, text);
  }

 private:
  std::string words() {
    static const std::vector<std::string> kWords = {"river",  " the", "<｜User｜>", "</think>",
                                                    " walks", "\n",   "é",          "<｜DSML｜"};
    std::string text = "q";
    for (int i = below(20); i > 0; --i) text += kWords[static_cast<std::size_t>(below(8))];
    return text;
  }

  std::mt19937 random_;
};

// What a client may do: read its answer, leave in the middle of it, at once, or within its own request.
void talk(Requests& requests, std::uint16_t port) {
  HttpClient client(port);
  std::string bytes = requests.next();
  const int way = requests.below(5);
  if (way == 0) bytes.resize(static_cast<std::size_t>(requests.below(static_cast<int>(bytes.size()))));
  client.send(bytes);
  if (way == 1) client.read_until("\r\n\r\n");
  if (way < 3) return;
  const ClientReply reply = client.read_reply();
  ASSERT_TRUE(reply.status == 200 || reply.status == 400) << reply.status << bytes;
}

std::size_t open_files() {
  std::size_t count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

TEST(RandomRequests, LeaveNothingBehind) {
  const char* asked = std::getenv("THALWEG_RANDOM_REQUESTS");
  const int count = asked == nullptr ? 400 : std::atoi(asked);
  const auto model = engine::load_model(std::string(THALWEG_SOURCE_DIR) + "/models/mini");
  engine::EngineOptions options;
  options.cache_tokens = 8192;
  options.sequences = 8;
  engine::Engine engine(*model, options);
  serve::EngineBackend backend(*model, engine);
  serve::Service service({});
  serve::HttpServerOptions http;
  http.port = 0;
  serve::HttpServer server(service, http);
  service.open(backend, {"mini", model->digest(), "engine"});
  HttpClient(server.port()).post("/v1/completions", R"({"model": "deepseek-flash", "prompt": "q"})");
  engine.drain();
  const std::uint32_t free_blocks = engine.statistics().free_blocks;
  while (service.metrics().open_connections.load() > 0) std::this_thread::sleep_for(1ms);
  const std::size_t files = open_files();
  std::vector<std::thread> clients;
  for (unsigned seed = 0; seed < 8; ++seed) {
    clients.emplace_back([&, seed] {
      Requests requests(seed);
      for (int i = 0; i < count / 8; ++i) talk(requests, server.port());
    });
  }
  for (std::thread& client : clients) client.join();
  engine.drain();
  for (int i = 0; i < 2000 && service.metrics().open_connections.load() > 0; ++i)
    std::this_thread::sleep_for(5ms);
  EXPECT_EQ(service.metrics().open_connections.load(), 0);
  EXPECT_EQ(service.metrics().open_answers.load(), 0);
  engine.drain();
  engine.check_invariants();
  const engine::EngineStatistics statistics = engine.statistics();
  EXPECT_GT(statistics.finished, 0u);
  EXPECT_GT(statistics.aborted, 0u) << "some clients left";
  EXPECT_EQ(statistics.admitted, statistics.finished + statistics.aborted);
  EXPECT_EQ(statistics.waiting + statistics.running, 0u);
  EXPECT_EQ(statistics.running_sequences, 0);
  EXPECT_EQ(statistics.free_blocks, free_blocks);
  EXPECT_EQ(open_files(), files);
  std::printf("%d requests: %d admitted, %d finished, %d aborted\n", count,
              static_cast<int>(statistics.admitted), static_cast<int>(statistics.finished),
              static_cast<int>(statistics.aborted));
}

}  // namespace
}  // namespace thalweg::testing
