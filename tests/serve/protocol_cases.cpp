// Every case of tests/data/api/protocol.json, without HTTP: recorded output in, events and whole answers out.
#include "serve/event_stream.hpp"
#include "serve/mailbox.hpp"
#include "serve/metrics.hpp"
#include "serve/protocol.hpp"
#include "serve/recorded_backend.hpp"
#include "wire/read_request.hpp"

namespace thalweg::testing {
namespace {

const Json& protocol_file() {
  static const Json file = api_cases("protocol.json");
  return file;
}

std::unique_ptr<serve::Protocol> protocol_of(const std::string& api, serve::AnswerContext context) {
  if (api == "chat") return serve::make_chat_protocol(std::move(context));
  if (api == "responses") return serve::make_responses_protocol(std::move(context));
  return serve::make_messages_protocol(std::move(context));
}

// Plays the recording of a case; `at_once` takes all news together, else after every event.
std::unique_ptr<serve::Protocol> play(const Json& golden, bool at_once) {
  const std::string api = golden["api"];
  const wire::Request request = wire::read_request(*wire::api_from_string(api), golden["request"], {});
  auto protocol = protocol_of(
      api,
      serve::answer_context(request, {golden["response_id"], request.model, golden["system_fingerprint"], 0},
                            released_tokenizer(), golden["request"]));
  const text::SpecialTokens specials = text::find_special_tokens(released_tokenizer());
  serve::Metrics metrics;
  serve::Mailbox::Options options;
  options.logprobs = request.inference.logprobs;
  options.tools = request.parsing.parse_tool_calls;
  options.specials = &specials;
  serve::Mailbox mailbox(options, metrics);
  engine::Request wanted;
  wanted.parse = request.parsing;
  Playback playback(golden["backend"], wanted);
  for (bool more = true; more;) {
    more = playback.step(1, [&](const engine::Event& event) { mailbox.put(event); });
    if (at_once && more) continue;
    const serve::Mailbox::News news = mailbox.take();
    if (news.begun) protocol->begin(*news.begun);
    for (const serve::AnswerPart& part : news.parts) protocol->add(part);
    for (const serve::AnswerEnd& end : news.ends) protocol->end(end);
  }
  return protocol;
}

class ProtocolCases : public ::testing::TestWithParam<bool> {};

TEST_P(ProtocolCases, StreamAsRecorded) {
  for (const Json& golden : protocol_file()["cases"]) {
    if (!golden.contains("sse")) continue;
    SCOPED_TRACE(golden["name"].get<std::string>());
    const Json stream = comparable(play(golden, GetParam())->take_output(), "", golden["response_id"]);
    ASSERT_EQ(stream.size(), golden["sse"].size()) << stream;
    for (std::size_t i = 0; i < stream.size(); ++i) {
      EXPECT_EQ(unordered(stream[i]), unordered(golden["sse"][i])) << i;
    }
  }
}

TEST_P(ProtocolCases, WholeAnswersAsRecorded) {
  for (const Json& golden : protocol_file()["cases"]) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    const Json whole = normalized(play(golden, GetParam())->whole(), golden["response_id"]);
    EXPECT_EQ(unordered(whole), unordered(golden["response"]));
  }
}

INSTANTIATE_TEST_SUITE_P(AtOnceAndPiecewise, ProtocolCases, ::testing::Bool());

}  // namespace
}  // namespace thalweg::testing
