#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::app {
namespace {

const std::string data = THALWEG_SOURCE_DIR "/tests/data/";

Json load(const std::string& file) {
  return parse_json(read_text_file(data + file), file);
}

ProgramResult inspect(const std::string& command, const Json& input, std::vector<std::string> options = {}) {
  const TemporaryFolder folder;
  const std::string file = folder.write("cases.json", to_text(input));
  options.insert(options.begin(), {"inspect", command, file});
  return run_program(options);
}

TEST(InspectFlops, AnswersTheGoldenCases) {
  const Json golden = load("flops.json");
  const ProgramResult result = run_program({"inspect", "flops", data + "flops.json"});
  ASSERT_EQ(result.exit_code, 0) << result.messages;
  Json expected = Json::array();
  for (const Json& c : golden["cases"]) {
    expected.push_back(Json{{"attention", c["attention"]}, {"total", c["total"]}});
  }
  EXPECT_EQ(parse_json(result.output, "output"), expected);
}

TEST(InspectFlops, CountsAnotherCheckpointIfAsked) {
  const std::string mini = THALWEG_SOURCE_DIR "/models/mini";
  const ProgramResult result =
      run_program({"inspect", "flops", data + "flops.json", "--model", mini, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.messages;
  const Json answers = parse_json(result.output, "output");
  EXPECT_EQ(answers.size(), load("flops.json")["cases"].size());
  EXPECT_LT(answers[0]["total"], load("flops.json")["cases"][0]["total"]);
}

struct BadInput {
  std::string found_in_message;
  std::function<void(Json&)> spoil;
};

TEST(InspectFlops, MalformedCasesAreRefusedByName) {
  const std::vector<BadInput> table = {
      {"cases: expected a value", [](Json& d) { d.erase("cases"); }},
      {"cases: expected a list", [](Json& d) { d["cases"] = 3; }},
      {"surprise: unknown member", [](Json& d) { d["surprise"] = 1; }},
      {"cases[0]: expected an object", [](Json& d) { d["cases"][0] = 1; }},
      {"cases[0].x: unknown member", [](Json& d) { d["cases"][0]["x"] = 1; }},
      {"cases[0].replay: expected off or mask or compact", [](Json& d) { d["cases"][0]["replay"] = "on"; }},
      {"cases[0].q: expected an integer in 1..1", [](Json& d) { d["cases"][0]["q"] = 2; }},
      {"cases[0].q: expected an integer in 1..1", [](Json& d) { d["cases"][0]["q"] = 0; }},
      {"cases[0].q: expected an integer in 1..1", [](Json& d) { d["cases"][0]["q"] = 1.5; }},
      {"cases[0].k: expected an integer", [](Json& d) { d["cases"][0]["k"] = ~std::uint64_t{0}; }},
      {"cases[0].k: expected a value", [](Json& d) { d["cases"][0].erase("k"); }},
      {"cases[0].keep: expected an integer", [](Json& d) { d["cases"][0]["keep"] = -1; }},
      {"cases[0].prompt: expected true or false", [](Json& d) { d["cases"][0]["prompt"] = 1; }},
      {"cases[4].full_len: expected an integer in 4096..", [](Json& d) { d["cases"][4]["full_len"] = 4095; }},
  };
  for (const BadInput& bad : table) {
    Json input = load("flops.json");
    bad.spoil(input);
    const ProgramResult result = inspect("flops", input);
    EXPECT_EQ(result.exit_code, 3) << bad.found_in_message;
    EXPECT_NE(result.messages.find(bad.found_in_message), std::string::npos) << result.messages;
    EXPECT_EQ(result.output, "");
  }
}

TEST(InspectVerifyPlan, AnswersTheGoldenCases) {
  const Json golden = load("varlen.json");
  const ProgramResult result = run_program({"inspect", "verify-plan", data + "varlen.json"});
  ASSERT_EQ(result.exit_code, 0) << result.messages;
  Json answer = parse_json(result.output, "output");
  ASSERT_EQ(answer["schedule"].size(), golden["schedule"].size());
  for (std::size_t i = 0; i < golden["schedule"].size(); ++i) {
    for (const auto& [name, value] : golden["schedule"][i]["expected"].items()) {
      EXPECT_EQ(answer["schedule"][i][name], value) << golden["schedule"][i]["name"] << " " << name;
    }
  }
  ASSERT_EQ(answer["allocate"].size(), golden["allocate"].size());
  for (std::size_t i = 0; i < golden["allocate"].size(); ++i) {
    EXPECT_EQ(answer["allocate"][i], golden["allocate"][i]["expected_query_lengths"]);
  }
}

TEST(InspectVerifyPlan, AContradictionIsTheAnswerOfItsCase) {
  Json input = load("varlen.json");
  input["schedule"] = Json::array({input["schedule"][0]});
  input["schedule"][0]["curve"] = Json::array({Json::array({1, 2.0})});
  const ProgramResult result = inspect("verify-plan", input);
  ASSERT_EQ(result.exit_code, 0) << result.messages;
  const Json answer = parse_json(result.output, "output");
  EXPECT_EQ(answer["schedule"][0]["error"], true);
  EXPECT_EQ(answer["schedule"][0]["message"],
            "curve: expected a step size of at least 2 rows, found 1 at most");
}

TEST(InspectVerifyPlan, MalformedCasesAreRefusedByName) {
  const std::vector<BadInput> table = {
      {"schedule: expected a value", [](Json& d) { d.erase("schedule"); }},
      {"schedule[0].curve[0]: expected a list of 2 numbers",
       [](Json& d) { d["schedule"][0]["curve"][0] = 1; }},
      {"schedule[0].curve: expected an integer", [](Json& d) { d["schedule"][0]["curve"][0][0] = 1.5; }},
      {"curve[1]: expected more than", [](Json& d) { d["schedule"][0]["curve"][1][0] = 1; }},
      {"expected a time above 0 ms", [](Json& d) { d["schedule"][0]["curve"][1][1] = 0; }},
      {"sequences[1]: expected an object", [](Json& d) { d["schedule"][0]["sequences"][1] = "x"; }},
      {"num_drafts: expected an integer in 0..",
       [](Json& d) { d["schedule"][0]["sequences"][0]["num_drafts"] = -1; }},
      {"accept_rates[0]: expected a number in 0..1",
       [](Json& d) { d["schedule"][0]["sequences"][0]["accept_rates"][0] = 1.5; }},
      {"expected a step size of the curve",
       [](Json& d) {
         d["schedule"][0]["updates"] = Json::array({Json::array({2, 3, 1, 1, 1})});
       }},
      {"allocate[0].total_query: expected an integer",
       [](Json& d) { d["allocate"][0]["total_query"] = "many"; }},
      {"allocate[0]: total rows: expected 8..48", [](Json& d) { d["allocate"][0]["total_query"] = 49; }},
      {"allocate[0]: row of sequence 1", [](Json& d) { d["allocate"][0]["remap"][1] = 10; }},
      {"allocate[0].remap[1]: expected an integer", [](Json& d) { d["allocate"][0]["remap"][1] = -2; }},
      {"previous_confidence[1]: expected a list of 5 numbers",
       [](Json& d) { d["allocate"][0]["previous_confidence"][1].push_back(0.5); }},
      {"previous_confidence: expected lists",
       [](Json& d) { d["allocate"][0]["previous_confidence"] = Json::array(); }},
  };
  for (const BadInput& bad : table) {
    Json input = load("varlen.json");
    bad.spoil(input);
    const ProgramResult result = inspect("verify-plan", input);
    EXPECT_EQ(result.exit_code, 3) << bad.found_in_message;
    EXPECT_NE(result.messages.find(bad.found_in_message), std::string::npos) << result.messages;
    EXPECT_EQ(result.output, "");
  }
}

TEST(InspectCases, CommandLineMistakesNameTheOption) {
  for (const std::string command : {"flops", "verify-plan"}) {
    EXPECT_EQ(run_program({"inspect", command}).exit_code, 2);
    EXPECT_NE(run_program({"inspect", command}).messages.find("FILE"), std::string::npos);
    EXPECT_EQ(run_program({"inspect", command, "x.json", "--nonsense"}).exit_code, 2);
    EXPECT_EQ(run_program({"inspect", command, "/nonexistent.json"}).exit_code, 3);
  }
}

}  // namespace
}  // namespace thalweg::app
