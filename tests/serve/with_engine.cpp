// The service on the real engine with the bundled model.
#include <fstream>
#include <iterator>
#include <regex>
#include <thread>

#include "schema/schema.hpp"
#include "serve/event_stream.hpp"
#include "serve/http_client.hpp"
#include "serve/http_server.hpp"

namespace thalweg::testing {
namespace {

using namespace std::chrono_literals;

const engine::LoadedModel& mini() {
  static const auto model = engine::load_model(std::string(THALWEG_SOURCE_DIR) + "/models/mini");
  return *model;
}

struct Served {
  Served() : engine(mini(), options()), backend(mini(), engine), service({}), server(service, http()) {
    service.open(backend, {"mini", mini().digest(), engine.describe()});
  }
  static engine::EngineOptions options() {
    engine::EngineOptions options;
    options.cache_tokens = 8192;
    options.sequences = 4;
    return options;
  }
  static serve::HttpServerOptions http() {
    serve::HttpServerOptions options;
    options.port = 0;
    return options;
  }
  Json chat(const std::string& members) {
    return HttpClient(server.port()).post("/chat/completions", body(members)).json();
  }
  static std::string body(const std::string& members) {
    return R"({"model": "deepseek-flash", "thinking": {"type": "disabled"}, "temperature": 0,
               "messages": [{"role": "user", "content": "Where does the river run, and who walks along it?"}])" +
           members + "}";
  }

  engine::Engine engine;
  serve::EngineBackend backend;
  serve::Service service;
  serve::HttpServer server;
};

TEST(WithEngine, StreamedTextIsTheWholeText) {
  Served served;
  const Json whole = served.chat(R"(, "max_tokens": 24)");
  const std::string stream =
      HttpClient(served.server.port())
          .post("/chat/completions", Served::body(R"(, "max_tokens": 24, "stream": true)"))
          .body;
  std::string text;
  Json usage;
  for (const StreamEvent& event : parse_events(stream)) {
    if (!event.data.is_object()) continue;
    text += event.data["choices"][0]["delta"].value("content", "");
    if (event.data.contains("usage")) usage = event.data["usage"];
  }
  EXPECT_EQ(text, whole["choices"][0]["message"]["content"].get<std::string>());
  EXPECT_FALSE(text.empty());
  EXPECT_EQ(usage["completion_tokens"], whole["usage"]["completion_tokens"]);
}

TEST(WithEngine, MessagesStartWithTheUsageOfThePrompt) {
  Served served;
  HttpClient client(served.server.port());
  const std::string body = R"({"model": "claude-x", "max_tokens": 4, "stream": true,
      "messages": [{"role": "user", "content": "Where does the river run, and who walks along it?"}]})";
  const Json start = parse_events(client.post("/v1/messages", body).body).front().data;
  const Json counted = client.post("/v1/messages/count_tokens", body).json();
  const Json& usage = start["message"]["usage"];
  EXPECT_EQ(usage["input_tokens"].get<int>() + usage["cache_read_input_tokens"].get<int>(),
            counted["input_tokens"].get<int>());
}

TEST(WithEngine, LogprobsCoverEveryTokenOfTheText) {
  Served served;
  const Json answer = served.chat(R"(, "max_tokens": 12, "logprobs": true, "top_logprobs": 2)");
  std::string joined;
  for (const Json& entry : answer["choices"][0]["logprobs"]["content"]) {
    for (const Json& byte : entry["bytes"]) joined += static_cast<char>(byte.get<int>());
    EXPECT_EQ(entry["top_logprobs"].size(), 2u);
  }
  const std::string content = answer["choices"][0]["message"]["content"];
  EXPECT_TRUE(joined.ends_with(content)) << joined << " / " << content;
}

TEST(WithEngine, CountersAgreeWithTheEngine) {
  Served served;
  for (int i = 0; i < 3; ++i) served.chat(R"(, "max_tokens": 3)");
  HttpClient(served.server.port()).post("/chat/completions", Served::body(R"(, "temperature": 9)"));
  served.engine.drain();
  const engine::EngineStatistics statistics = served.engine.statistics();
  const std::string page = HttpClient(served.server.port()).get("/metrics").body;
  const auto value = [&](const std::string& name) {
    const std::size_t at = page.find("\nthalweg_" + name + " ");
    return at == std::string::npos ? -1.0 : std::stod(page.substr(at + name.size() + 10));
  };
  EXPECT_EQ(value("engine_requests_admitted_total"), 3);
  EXPECT_EQ(value("engine_requests_finished_total"), static_cast<double>(statistics.finished));
  EXPECT_EQ(value("prompt_tokens_total"), static_cast<double>(statistics.prompt_tokens));
  EXPECT_EQ(value("output_tokens_total"), static_cast<double>(statistics.output_tokens));
  EXPECT_EQ(value("cache_free_blocks"), static_cast<double>(statistics.free_blocks));
  // Every step is in both histograms of steps, every ended request in that of the queue.
  EXPECT_EQ(value("step_seconds_count"), static_cast<double>(statistics.steps));
  EXPECT_EQ(value("step_rows_count"), static_cast<double>(statistics.steps));
  EXPECT_EQ(value("step_rows_sum"), static_cast<double>(statistics.rows));
  EXPECT_EQ(value("queue_seconds_count"), static_cast<double>(statistics.finished + statistics.aborted));
}

TEST(WithEngine, TheDashboardAsksForCountersThatExist) {
  Served served;
  served.chat(R"(, "max_tokens": 3)");
  const std::string page = HttpClient(served.server.port()).get("/metrics").body;
  std::ifstream file(std::string(THALWEG_SOURCE_DIR) + "/deploy/grafana.json");
  const std::string dashboard(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(parse_json(dashboard, "grafana.json")["title"], "Thalweg");
  const std::regex names("thalweg_([a-z_]+)");
  int asked = 0;
  for (std::sregex_iterator it(dashboard.begin(), dashboard.end(), names); it != std::sregex_iterator();
       ++it) {
    // A counter by position has no lines before the first draft, but always says what it is.
    std::string name = (*it)[0];
    for (const std::string part : {"_bucket", "_sum", "_count"}) {
      if (name.ends_with(part)) name.resize(name.size() - part.size());
    }
    EXPECT_NE(page.find("# TYPE " + name + " "), std::string::npos) << name;
    ++asked;
  }
  EXPECT_GT(asked, 20);
}

TEST(WithEngine, ClientsThatLeaveGiveEverythingBack) {
  Served served;
  served.chat(R"(, "max_tokens": 2)");
  served.engine.drain();
  const std::uint32_t free_blocks = served.engine.statistics().free_blocks;
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 12; ++i) {  // more than run at once: some wait
    clients.push_back(std::make_unique<HttpClient>(served.server.port()));
    clients.back()->send(HttpClient::request("POST", "/chat/completions",
                                             Served::body(R"(, "max_tokens": 2000, "stream": true)")));
  }
  for (int i = 0; i < 12; i += 3) clients[static_cast<std::size_t>(i)]->read_until("content");
  clients.clear();
  served.engine.drain();
  while (served.service.metrics().open_connections.load() > 0) std::this_thread::sleep_for(1ms);
  served.engine.check_invariants();
  const engine::EngineStatistics statistics = served.engine.statistics();
  EXPECT_EQ(statistics.running_sequences, 0);
  EXPECT_EQ(statistics.free_blocks, free_blocks);
  EXPECT_EQ(statistics.admitted, statistics.finished + statistics.aborted);
}

TEST(WithEngine, AContinuedResponseFindsTheWholeConversationInTheCache) {
  Served served;
  HttpClient client(served.server.port());
  Json previous;
  std::int64_t before = 0;
  for (int turn = 0; turn < 5; ++turn) {
    Json body = {
        {"model", "deepseek-flash"},
        {"input", "Turn " + std::to_string(turn) + ": where does the river run, and who walks along it?"},
        {"reasoning", {{"effort", "none"}}},
        {"max_output_tokens", 200}};
    if (turn > 0) body["previous_response_id"] = previous["id"];
    const ClientReply reply = client.post("/v1/responses", to_text(body));
    ASSERT_EQ(reply.status, 200) << reply.body;
    previous = reply.json();
    ASSERT_EQ(previous["status"], "completed") << "a message the model ended itself is replayed as its ids";
    const Json& usage = previous["usage"];
    // The last token was sampled, not computed.
    EXPECT_GE(usage["input_tokens_details"]["cached_tokens"].get<std::int64_t>(), before) << turn;
    EXPECT_GT(usage["input_tokens"].get<std::int64_t>(), before);
    before = usage["input_tokens"].get<std::int64_t>() + usage["output_tokens"].get<std::int64_t>() - 1;
  }
}

TEST(WithEngine, ContextIsNamedInTheRefusal) {
  Served served;
  const Json answer = served.chat(R"(, "max_tokens": 100000)");
  EXPECT_NE(answer["error"]["message"].get<std::string>().find("maximum context length is"),
            std::string::npos);
}

TEST(WithEngine, AnswersFollowTheirFormat) {
  Served served;
  const std::string format =
      R"(, "max_tokens": 24, "response_format": {"type": "regex", "regex": "(yes|no), [0-9]{2}"})";
  const Json answer = served.chat(format)["choices"][0];
  EXPECT_TRUE(
      std::regex_match(answer["message"]["content"].get<std::string>(), std::regex("(yes|no), [0-9]{2}")))
      << answer;
  EXPECT_EQ(answer["finish_reason"], "stop");
}

TEST(WithEngine, AnswersAreValidForTheirSchema) {
  Served served;
  const std::string river = R"("river": {"enum": ["Rhine", "Elbe"]})";
  const std::string km = R"("km": {"type": "integer", "minimum": 3, "maximum": 80})";
  const std::string open =
      R"({"type": "object", "required": ["km"], "properties": {)" + river + ", " + km + "}}";
  // Strict: objects are closed and have all their members, and what else the schema says still holds.
  const std::string closed = R"({"type": "object", "required": ["river", "km"], "additionalProperties": false,
      "properties": {"river": {"type": "string", "enum": ["Rhine", "Elbe"]}, )" +
                             km + "}}";
  const std::tuple<const char*, std::string, std::string> cases[] = {{"false", open, open},
                                                                     {"true", closed, closed}};
  for (const auto& [strict, schema, expected] : cases) {
    const Json answer = served.chat(R"(, "max_tokens": 200, "response_format": {"type": "json_schema",
        "json_schema": {"name": "n", "strict": )" +
                                    std::string(strict) + R"(, "schema": )" + schema + "}}");
    ASSERT_TRUE(answer.contains("choices")) << answer;
    const Json& choice = answer["choices"][0];
    if (std::string(strict) == "true") EXPECT_EQ(choice["finish_reason"], "stop") << answer;
    if (choice["finish_reason"] != "stop") continue;
    const std::string text = choice["message"]["content"].get<std::string>();
    EXPECT_FALSE(schema::validate_text(schema::parse_schema(expected), text)) << answer;
  }
}

TEST(WithEngine, SchemasThatAreNotHonouredAreRefusedWithKeywordAndPlaceWithinASecond) {
  Served served;
  const std::pair<std::string, std::string> cases[] = {
      {R"({"properties": {"a": {"colour": "red"}}})", "colour"},
      {R"x({"properties": {"a": {"pattern": "(?=a)b"}}})x", "pattern"},
      {R"({"$ref": "https://example.org/schema"})", "$ref"},
      {R"x({"pattern": "((((a{1,99}){1,99}){1,99}){1,99})"})x", ""},
      {R"({"type": "string", "minLength": 3, "maxLength": 2})", ""},
  };
  for (const auto& [schema, keyword] : cases) {
    const auto begin = std::chrono::steady_clock::now();
    const ClientReply reply =
        HttpClient(served.server.port())
            .post("/chat/completions", Served::body(R"(, "response_format": {"type": "json_schema",
                "json_schema": {"name": "n", "schema": )" +
                                                    schema + "}}"));
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json()["error"]["param"], "response_format.json_schema.schema") << reply.body;
    EXPECT_NE(reply.json()["error"]["message"].get<std::string>().find(keyword), std::string::npos)
        << reply.body;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  }
}

TEST(WithEngine, ArgumentsOfStrictToolsAreValid) {
  Served served;
  const std::string tools =
      R"(, "max_tokens": 120, "tool_choice": "required", "tools": [{"type": "function", "function": {
      "name": "walk", "strict": true, "parameters": {"type": "object", "additionalProperties": false,
      "required": ["days", "pace"], "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 9},
      "pace": {"type": "string", "enum": ["slow", "fast"]}}}}}])";
  const Json choice = served.chat(tools)["choices"][0];
  ASSERT_TRUE(choice["message"].contains("tool_calls")) << choice;
  const Json arguments =
      parse_json(choice["message"]["tool_calls"][0]["function"]["arguments"].get<std::string>(), "arguments");
  EXPECT_EQ(arguments.size(), 2U);
  EXPECT_TRUE(arguments["days"] >= 1 && arguments["days"] <= 9) << arguments;
  EXPECT_TRUE(arguments["pace"] == "slow" || arguments["pace"] == "fast") << arguments;
}

TEST(WithEngine, ARequiredCallIsACallOfThatTool) {
  Served served;
  const std::string tools = R"(, "max_tokens": 200, "tools": [
      {"type": "function", "function": {"name": "first", "parameters": {"type": "object", "properties": {}}}},
      {"type": "function", "function": {"name": "second", "parameters": {"type": "object", "properties": {}}}}],
      "logprobs": false, "tool_choice": {"type": "function", "function": {"name": "second"}})";
  const Json answer = served.chat(tools)["choices"][0];
  ASSERT_TRUE(answer["message"].contains("tool_calls")) << answer;
  for (const Json& call : answer["message"]["tool_calls"]) EXPECT_EQ(call["function"]["name"], "second");
}

TEST(WithEngine, ExpressionsThatAreNotHonouredAreRefusedWithinASecond) {
  Served served;
  for (const char* regex : {"(?=a)b", "(a)\\\\1", "((((a{1,99}){1,99}){1,99}){1,99})"}) {
    const auto begin = std::chrono::steady_clock::now();
    const ClientReply reply =
        HttpClient(served.server.port())
            .post("/chat/completions", Served::body(R"(, "response_format": {"type": "regex", "regex": ")" +
                                                    std::string(regex) + "\"}"));
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json()["error"]["param"], "response_format.regex") << reply.body;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  }
}

}  // namespace
}  // namespace thalweg::testing
