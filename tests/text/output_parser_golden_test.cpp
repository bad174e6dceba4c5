// Every case of tests/data/api/parse.json, however the output is cut into pieces.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "support/text_data.hpp"
#include "text/output_parser_support.hpp"

namespace thalweg::testing {
namespace {

struct GoldenCase {
  explicit GoldenCase(const Json& json)
      : name(json["name"]), start(text::parser_start_from_json(json["start"], "start")), expected(json) {
    if (json.contains("chunks")) chunks = json["chunks"].get<std::vector<std::string>>();
    if (json.contains("ids")) ids = json["ids"].get<std::vector<text::TokenId>>();
    finish = *text::backend_finish_from_string(json["backend_finish"].get<std::string>());
    for (const std::string& chunk : chunks) whole += chunk;
  }

  std::string name;
  ParserStart start;
  Json expected;
  std::vector<std::string> chunks;
  std::vector<text::TokenId> ids;
  text::BackendFinish finish;
  std::string whole;
};

std::vector<GoldenCase> golden_cases(const char* list) {
  static const Json file = api_cases("parse.json");
  std::vector<GoldenCase> cases;
  for (const Json& json : file.at(list)) cases.emplace_back(json);
  return cases;
}

// In JSON mode only, runs of blanks in content are squeezed before comparing.
std::string comparable(const ParserStart& start, const std::string& content) {
  return start.parse_json_output ? squeeze_blanks(content) : content;
}

Json optional_text(const std::optional<std::string>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json events_of(const GoldenCase& golden, const Output& output) {
  Json events = Json::array();
  for (const ParseEvent& event : output.events()) {
    if (event.kind == Kind::call_end) continue;
    const bool content = event.kind == Kind::content;
    events.push_back({to_string(event.kind), content ? comparable(golden.start, event.text) : event.text});
  }
  return events;
}

Json message_of(const GoldenCase& golden, const ParsedMessage& message) {
  Json calls = Json::array();
  for (const text::ParsedCall& call : message.calls) {
    calls.push_back(Json{{"name", call.name}, {"arguments", call.arguments}});
  }
  return Json{{"reasoning_content", optional_text(message.reasoning)},
              {"content", comparable(golden.start, message.content)},
              {"tool_calls", calls},
              {"finish_reason", to_string(message.finish_reason)}};
}

void expect_golden(const GoldenCase& golden, const Output& output, const std::string& how) {
  SCOPED_TRACE(golden.name + ", " + how);
  const ParsedMessage message = output.message(golden.finish);
  EXPECT_EQ(events_of(golden, output), golden.expected["events"]);
  EXPECT_EQ(message_of(golden, message), golden.expected["message"]);
  EXPECT_EQ(optional_text(message.stop_sequence), golden.expected["stop_sequence"]);
  EXPECT_TRUE(output.whole_characters());
}

class OutputParserGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(OutputParserGolden, GivenChunksGiveTheExpectedEventsAndMessage) {
  for (const GoldenCase& golden : golden_cases(GetParam())) {
    expect_golden(golden, parse_chunks(golden.start, golden.chunks), "given chunks");
  }
}

TEST_P(OutputParserGolden, OneChunkOneCharacterAndOneByteAtATimeGiveTheSame) {
  for (const GoldenCase& golden : golden_cases(GetParam())) {
    expect_golden(golden, parse_text(golden.start, golden.whole), "one chunk");
    expect_golden(golden, parse_chunks(golden.start, split_characters(golden.whole)), "by character");
    expect_golden(golden, parse_chunks(golden.start, split_bytes(golden.whole)), "by byte");
  }
}

TEST_P(OutputParserGolden, EverySplitIntoTwoChunksGivesTheSame) {
  for (const GoldenCase& golden : golden_cases(GetParam())) {
    for (std::size_t cut = 0; cut <= golden.whole.size(); ++cut) {
      const std::vector<std::string> halves = {golden.whole.substr(0, cut), golden.whole.substr(cut)};
      expect_golden(golden, parse_chunks(golden.start, halves), "cut at " + std::to_string(cut));
    }
  }
}

TEST_P(OutputParserGolden, RandomSplitsGiveTheSame) {
  std::mt19937 random(1);
  for (const GoldenCase& golden : golden_cases(GetParam())) {
    for (int round = 0; round < 50; ++round) {
      std::vector<std::string> chunks;
      for (std::size_t at = 0; at < golden.whole.size(); at += chunks.back().size()) {
        chunks.push_back(golden.whole.substr(at, random() % 12));
      }
      expect_golden(golden, parse_chunks(golden.start, chunks), "random split");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Text, OutputParserGolden, ::testing::Values("cases", "extensions"),
                         [](const auto& list) { return std::string(list.param); });

TEST(OutputParserGoldenTokens, OnlyRealSpecialTokensAreMarkup) {
  const text::SpecialTokens specials = text::find_special_tokens(released_tokenizer());
  for (const GoldenCase& golden : golden_cases("token_cases")) {
    expect_golden(golden, parse_ids(golden.start, released_tokenizer(), specials, golden.ids), "ids");
  }
}

TEST(OutputParserGoldenTokens, RollbackAtEveryTokenGivesTheSame) {
  const text::SpecialTokens specials = text::find_special_tokens(released_tokenizer());
  const std::vector<text::TokenId> rejected = {specials.dsml, 30, specials.end_think, specials.user, 30};
  for (const GoldenCase& golden : golden_cases("token_cases")) {
    OutputParser parser(golden.start, released_tokenizer(), specials);
    Output output;
    std::vector<ParseEvent> events;
    for (const text::TokenId id : golden.ids) {
      const OutputParser checkpoint = parser;
      std::vector<ParseEvent> dropped;
      for (const text::TokenId draft : rejected) parser.feed(draft, dropped);
      parser = checkpoint;
      parser.feed(id, events);
      take(output, events);
    }
    parser.finish(events);
    take(output, events);
    expect_golden(golden, output, "with rollbacks");
  }
}

}  // namespace
}  // namespace thalweg::testing
