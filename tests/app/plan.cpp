// `thalweg plan` as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/plan_report.hpp"
#include "base/json.hpp"
#include "support/program.hpp"

namespace thalweg::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kReleased = THALWEG_SOURCE_DIR "/tests/data/released_config.json";

std::vector<std::string> released(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"plan", "--model", kReleased});
  return arguments;
}

Json document(const std::vector<std::string>& arguments) {
  const ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.messages;
  return parse_json(result.output, "output");
}

TEST(Plan, NamesTheReleasedTotals) {
  const ProgramResult result = run_program({"plan", "--model", kReleased});
  EXPECT_EQ(result.exit_code, 0) << result.messages;
  for (const char* part :
       {"96,085", "510,286,023,000", "763,205,315,794", "288,777,830,400", "890 bytes", "891 stored",
        "3,128,928", "4 GPUs of 141.0 GB", "8 GPUs of 141.0 GB", "host with"}) {
    EXPECT_THAT(result.output, HasSubstr(part));
  }
}

TEST(Plan, GivesTheSameAsJson) {
  const Json plan = document(released({"--json"}));
  EXPECT_EQ(plan["totals"]["tensors"], 96'085);
  EXPECT_EQ(plan["totals"]["bytes"], 510'286'023'000);
  EXPECT_EQ(plan["parts"].size(), 15U);
  EXPECT_EQ(plan["cache"]["global_bytes_per_token"], 890.0);
  EXPECT_EQ(plan["cache"]["stored_bytes_per_token"], 891.0);
  EXPECT_EQ(plan["cache"]["state_slot_bytes"], 3'128'928);
  ASSERT_EQ(plan["devices"].size(), 3U);
  EXPECT_EQ(plan["devices"][1]["gpus"], 4);
  EXPECT_TRUE(plan["devices"][1]["fits"].get<bool>());
  EXPECT_TRUE(plan["devices"][2]["fits"].get<bool>());
}

TEST(Plan, PlansTheBundledModelOnTheHost) {
  const Json plan = document({"plan", "--gpus", "0", "--host-memory", "2", "--json"});
  EXPECT_EQ(plan["totals"]["bytes"], 37'840'312);
  EXPECT_TRUE(plan["devices"][0]["fits"].get<bool>());
  EXPECT_GT(plan["devices"][0]["capacity"][0]["sequences"], 1);
}

TEST(Plan, AcceptsADirectory) {
  const Json plan = document({"plan", "--model", THALWEG_SOURCE_DIR "/tests/data/tiny/model", "--json"});
  EXPECT_EQ(plan["totals"]["tensors"], 1571);
}

TEST(Plan, WhatIsSaidToFitFits) {
  const Json plan = document(released({"--gpus", "8", "--context", "131072", "--json"}));
  const Json& capacity = plan["devices"][0]["capacity"][0];
  const auto most = capacity["sequences"].get<std::int64_t>();
  const auto arguments = [&](std::int64_t n) {
    return released({"--gpus", "8", "--context", "131072", "--sequences", std::to_string(n)});
  };
  EXPECT_EQ(run_program(arguments(most)).exit_code, 0);
  EXPECT_EQ(run_program(arguments(most + 1)).exit_code, 1);
}

TEST(Plan, ALoadThatCannotFitFailsWithTheSumAndTheLargestTerm) {
  const ProgramResult result = run_program(
      released({"--gpus", "4", "--context", "1048576", "--sequences", "512", "--batch-tokens", "16384"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.messages, AllOf(HasSubstr("needs 215.2 GB"), HasSubstr("has 141.0 GB"),
                                     HasSubstr("largest term: cache pages, 119.6 GB")));
  EXPECT_THAT(result.output, HasSubstr("does not fit"));
}

TEST(Plan, ADeviceThatCannotHoldTheWeightsFails) {
  const ProgramResult result = run_program(released({"--gpus", "1"}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.messages, HasSubstr("largest term: routed experts, 288.8 GB"));
}

TEST(Plan, AHostTooSmallForTheTablesFails) {
  EXPECT_EQ(run_program(released({"--gpus", "8", "--host-memory", "100"})).exit_code, 1);
  EXPECT_EQ(run_program(released({"--gpus", "8", "--host-memory", "100", "--engram", "device"})).exit_code,
            0);
}

TEST(Plan, ShowsTheLongestContextForGivenSequences) {
  const Json plan = document(released({"--gpus", "4", "--sequences", "512", "--json"}));
  const auto context = plan["devices"][0]["capacity"][0]["context"].get<std::int64_t>();
  EXPECT_GT(context, 131'072);
  EXPECT_LT(context, 1'048'576);
}

struct BadUse {
  std::vector<std::string> arguments;
  const char* message;
};

TEST(Plan, WrongOptionsAreNamed) {
  const BadUse cases[] = {{{"--context", "0"}, "--context"},
                          {{"--context", "5000"}, "--context"},
                          {{"--sequences", "-1"}, "--sequences"},
                          {{"--sequences", "1.5"}, "--sequences"},
                          {{"--gpus", "many"}, "--gpus"},
                          {{"--gpus", "-1"}, "--gpus"},
                          {{"--gpu-memory", "nan"}, "--gpu-memory"},
                          {{"--gpu-memory", "0"}, "--gpu-memory"},
                          {{"--host-memory", "inf"}, "--host-memory"},
                          {{"--batch-tokens", "0"}, "--batch-tokens"},
                          {{"--engram", "disk"}, "--engram"},
                          {{"--nodes", "2"}, "--nodes"}};
  for (const BadUse& bad : cases) {
    std::vector<std::string> arguments = {"plan"};
    arguments.insert(arguments.end(), bad.arguments.begin(), bad.arguments.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 2) << bad.message;
    EXPECT_THAT(result.messages, HasSubstr(bad.message));
  }
}

TEST(Plan, AMissingOrWrongConfigurationIsNamed) {
  const ProgramResult missing = run_program({"plan", "--model", "/no/such/place"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.messages, HasSubstr("/no/such/place"));
  const TemporaryFolder folder;
  const auto file = folder.write("config.json", R"({"architectures": ["Other"]})");
  const ProgramResult wrong = run_program({"plan", "--model", file});
  EXPECT_EQ(wrong.exit_code, 3);
  EXPECT_THAT(wrong.messages, AllOf(HasSubstr(file.string()), HasSubstr("architectures")));
}

TEST(PlanReport, ShowsBytesInThreeDigitsAndMore) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(999'960), "1.0 MB");
  EXPECT_EQ(bytes_text(510'286'023'000), "510.3 GB");
  EXPECT_EQ(bytes_text(INT64_MAX), "9.2 EB");
}

}  // namespace
}  // namespace thalweg::app
