// Answers held to a grammar: the same whatever speculates, and what becomes of a request whose grammar is
// late, wrong or not wanted any more.
#include <regex>

#include "engine_support.hpp"

namespace thalweg::engine {
namespace {

using grammar::Constraint;
using testing::Answer;
using testing::ask;
using testing::model_of;

constexpr std::int64_t kTokens = 20;

Request constrained(std::optional<Constraint> constraint, std::uint64_t seed = 5) {
  const LoadedModel& model = model_of("mini");
  Request request;
  request.prompt = model.tokenizer.encode("<｜begin▁of▁sentence｜>The list of the rivers is");
  request.sampling.max_tokens = kTokens;
  request.sampling.seed = seed;
  request.constraint = std::move(constraint);
  return request;
}

Constraint regex(const std::string& text) {
  return {.kind = Constraint::Kind::regex, .text = text};
}

struct Cell {
  std::string name;
  Request request;
};

// {no grammar, JSON, JSON schema, regular expression, tool calls} x {log-probabilities, n = 3, stop string,
// penalties} at temperature 0 and 1.
std::vector<Cell> cells() {
  const std::vector<std::pair<std::string, std::optional<Constraint>>> constraints = {
      {"none", std::nullopt},
      {"JSON", Constraint{.kind = Constraint::Kind::json_object}},
      {"schema", Constraint{.kind = Constraint::Kind::json_schema,
                            .text = R"({"type": "object", "required": ["name"], "properties": {
                              "name": {"enum": ["Rhine", "Danube", "Elbe"]}, "km": {"type": "integer"}}})"}},
      {"regex", regex("( [A-Z][a-z]{2,8},){1,3} and the end\\.")},
      {"tools", Constraint{.kind = Constraint::Kind::tool_calls,
                           .tools = {{"f", R"({"type": "object", "additionalProperties": false,
                               "required": ["n"], "properties": {"n": {"type": "integer"}}})"},
                                     {"get_time"}},
                           .calls_required = true}}};
  std::vector<Cell> all;
  for (const auto& [name, constraint] : constraints) {
    for (const double temperature : {0.0, 1.0}) {
      for (const char* with : {"logprobs", "n", "stop", "penalties"}) {
        Cell cell{name + " " + with + " at " + std::to_string(temperature), constrained(constraint)};
        SamplingParams& sampling = cell.request.sampling;
        sampling.temperature = temperature;
        sampling.logprobs = 3;
        sampling.filtered_logprobs = 3;
        const std::string what = with;
        if (what == "n") sampling.n = 3;
        if (what == "stop") sampling.stop_strings = {"e", "u"};
        if (what == "penalties") {
          sampling.repetition_penalty = 1.3;
          sampling.frequency_penalty = 0.5;
        }
        all.push_back(std::move(cell));
      }
    }
  }
  return all;
}

std::vector<std::vector<Answer>> answers_of(const std::string& speculation, bool asynchronous,
                                            bool together) {
  EngineOptions options = testing::device_options();
  options.speculation = parse_speculation(speculation);
  options.asynchronous = asynchronous;
  Engine engine(model_of("mini"), options);
  std::vector<std::shared_ptr<std::vector<Answer>>> asked;
  for (Cell& cell : cells()) {
    asked.push_back(ask(engine, std::move(cell.request)));
    if (!together) engine.drain();
  }
  engine.drain();
  engine.check_invariants();
  testing::expect_balanced(engine.statistics());
  std::vector<std::vector<Answer>> answers;
  for (const auto& one : asked) answers.push_back(*one);
  return answers;
}

const std::vector<std::vector<Answer>>& plain_answers() {
  static const auto answers = answers_of("off", false, false);
  return answers;
}

class GrammarAndSpeculation : public ::testing::TestWithParam<const char*> {};

TEST_P(GrammarAndSpeculation, GivesTheTokensAndLogprobsOfPlainDecoding) {
  const auto answers = answers_of(GetParam(), true, true);
  const auto all = cells();
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].name);
    ASSERT_EQ(answers[i].size(), plain_answers()[i].size());
    for (std::size_t choice = 0; choice < answers[i].size(); ++choice) {
      const Answer& expected = plain_answers()[i][choice];
      const Answer& answer = answers[i][choice];
      EXPECT_EQ(answer.error, "");
      EXPECT_EQ(answer.tokens, expected.tokens);
      EXPECT_EQ(answer.text, expected.text);
      EXPECT_EQ(answer.finish, expected.finish);
      EXPECT_TRUE(testing::same(answer.logprobs, expected.logprobs));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, GrammarAndSpeculation,
                         ::testing::Values("off", "fixed:1", "fixed:3", "fixed:5", "dynamic", "adaptive"));

TEST(Grammar, FinishedAnswersMatchAndDraftsAreAcceptedUnderIt) {
  EngineOptions options = testing::device_options();
  options.speculation = parse_speculation("fixed:5");
  Engine engine(model_of("mini"), options);
  std::vector<std::shared_ptr<std::vector<Answer>>> asked;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Request request = constrained(regex("(yes|no), [0-9]{2}\\.[0-9]"), seed);
    request.sampling.temperature = seed % 2 == 0 ? 0 : 1;
    asked.push_back(ask(engine, std::move(request)));
  }
  engine.drain();
  for (const auto& answers : asked) {
    const Answer& answer = answers->front();
    EXPECT_EQ(answer.finish, Finish::stop);
    EXPECT_TRUE(std::regex_match(answer.text, std::regex("(yes|no), [0-9]{2}\\.[0-9]"))) << answer.text;
  }
  EXPECT_GT(engine.statistics().drafts_accepted, 0U);
}

TEST(Grammar, HoldsOnlyAfterTheGivenToken) {
  const LoadedModel& model = model_of("mini");
  Engine engine(model, testing::device_options());
  Constraint digits = regex("[0-9]{3}");
  const std::int32_t comma = model.tokenizer.encode_plain(",").front();
  digits.after_token = comma;
  Request request = constrained(digits);
  request.sampling.temperature = 0;
  request.sampling.logit_bias = {{comma, 5}};
  request.sampling.max_tokens = 200;
  const auto answers = ask(engine, std::move(request));
  engine.drain();
  const std::vector<std::int32_t>& tokens = answers->front().tokens;
  const auto at = std::find(tokens.begin(), tokens.end(), comma);
  ASSERT_NE(at, tokens.end());
  ASSERT_NE(at, tokens.begin());
  const std::string after = model.tokenizer.decode(std::span(tokens).subspan(at - tokens.begin() + 1));
  EXPECT_TRUE(std::regex_match(after.substr(0, 3), std::regex("[0-9]{3}"))) << after;
  EXPECT_EQ(answers->front().finish, Finish::stop);
}

TEST(Grammar, RefusesWhatDoesNotGoWithItByName) {
  Engine engine(model_of("mini"), testing::device_options());
  const auto subject_of = [&](Request request) {
    try {
      engine.submit(std::move(request), [](const Event&) {});
    } catch (const InputError& error) {
      return error.subject();
    }
    return std::string("nothing");
  };
  Request request = constrained(regex("a"));
  request.sampling.ignore_eos = true;
  EXPECT_EQ(subject_of(request), "ignore_eos");
  request.sampling.ignore_eos = false;
  request.sampling.min_tokens = 2;
  EXPECT_EQ(subject_of(request), "min_tokens");
  EXPECT_EQ(subject_of(constrained(regex("(?=a)"))), "regex");
}

TEST(Grammar, OneThatCannotBeCompiledEndsItsRequestAlone) {
  Engine engine(model_of("mini"), testing::device_options());
  const auto wrong =
      ask(engine, constrained(Constraint{.kind = Constraint::Kind::ebnf, .text = "root ::= missing"}));
  const auto right = ask(engine, constrained(regex("ab")));
  engine.drain();
  EXPECT_EQ(wrong->front().finish, Finish::refused);
  EXPECT_NE(wrong->front().error.find("missing"), std::string::npos) << wrong->front().error;
  EXPECT_EQ(wrong->front().error.find('/'), std::string::npos) << wrong->front().error;
  EXPECT_EQ(right->front().text, "ab");
  engine.check_invariants();
  testing::expect_balanced(engine.statistics());
}

// Slow to compile, though within the bounds.
Constraint slow(int i) {
  return regex("(.{0,300}a){2}" + std::to_string(i));
}

TEST(Grammar, AbortWhileWaitingForItGivesEverythingBack) {
  Engine engine(model_of("mini"), testing::device_options());
  const auto before = engine.statistics().free_blocks;
  std::vector<std::shared_ptr<Answer>> answers;
  std::vector<RequestId> ids;
  for (int i = 0; i < 6; ++i) {
    answers.push_back(std::make_shared<Answer>());
    ids.push_back(engine.submit(constrained(slow(i)),
                                [answer = answers.back()](const Event& event) { answer->add(event); }));
  }
  for (const RequestId id : ids) engine.cancel(id);
  engine.drain();
  for (const auto& answer : answers) EXPECT_EQ(answer->finish, Finish::aborted);
  const auto after = ask(engine, constrained(regex("ab")));
  engine.drain();
  EXPECT_EQ(after->front().text, "ab");
  engine.check_invariants();
  testing::expect_balanced(engine.statistics());
  EXPECT_GE(engine.statistics().free_blocks + 1, before);
}

TEST(Grammar, NobodyWaitsForTheGrammarOfAnother) {
  Engine engine(model_of("mini"), testing::device_options());
  std::vector<std::string> order;
  for (int i = 0; i < 3; ++i) {
    ask(engine, constrained(slow(10 + i)), [&](const Event& event) {
      if (event.finish) order.emplace_back("constrained");
    });
  }
  Request free = constrained(std::nullopt);
  free.sampling.max_tokens = 2;
  ask(engine, std::move(free), [&](const Event& event) {
    if (event.finish) order.emplace_back("free");
  });
  engine.drain();
  ASSERT_EQ(order.size(), 4U);
  EXPECT_EQ(order.front(), "free");
}

TEST(Grammar, EndsWithTheEngineWhileItIsCompiled) {
  Answer answer;
  {
    Engine engine(model_of("mini"), testing::device_options());
    engine.submit(constrained(slow(20)), [&](const Event& event) { answer.add(event); });
  }
  EXPECT_EQ(answer.finish, Finish::aborted);
}

}  // namespace
}  // namespace thalweg::engine
