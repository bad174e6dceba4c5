// Flags of `thalweg generate` whose values make no sense are refused before a model is loaded.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/program.hpp"

namespace thalweg::app {
namespace {

struct Case {
  std::vector<std::string> arguments;
  std::string named;
};

TEST(GenerateOptions, ABadValueIsAUsageErrorThatNamesTheFlag) {
  const std::vector<Case> cases = {
      {{"--temperature", "abc"}, "--temperature"},
      {{"--temperature", "-1"}, "--temperature: expected"},
      {{"--temperature", "nan"}, "--temperature: expected"},
      {{"--temperature", "2.1"}, "--temperature: expected"},
      {{"--temperature="}, "--temperature"},
      {{"--top-p", "0"}, "--top-p: expected"},
      {{"--top-p", "1.5"}, "--top-p: expected"},
      {{"--top-k", "-2"}, "--top-k: expected"},
      {{"--top-k", "1.5"}, "--top-k"},
      {{"--top-k", "99999999999"}, "--top-k"},
      {{"--min-p", "-0.1"}, "--min-p: expected"},
      {{"--repetition-penalty", "0"}, "--repetition-penalty: expected"},
      {{"--presence-penalty", "3"}, "--presence-penalty: expected"},
      {{"--frequency-penalty", "-3"}, "--frequency-penalty: expected"},
      {{"--max-tokens", "0"}, "--max-tokens: expected"},
      {{"--max-tokens", "-5"}, "--max-tokens: expected"},
      {{"--max-tokens", "ten"}, "--max-tokens"},
      {{"--min-tokens", "-1"}, "--min-tokens: expected"},
      {{"--min-tokens", "9", "--max-tokens", "8"}, "--min-tokens: expected at most max_tokens (8)"},
      {{"--n", "0"}, "--n: expected"},
      {{"--n", "129"}, "--n: expected"},
      {{"--seed", "-1"}, "--seed"},
      {{"--seed", "1.5"}, "--seed"},
      {{"--stop", ""}, "--stop"},
      {{"--logprobs", "5"}, "--logprobs: only with --json"},
      {{"--logprobs", "-1", "--json"}, "--logprobs: expected"},
      {{"--effort", "0"}, "--effort"},
      {{"--threads", "0"}, "--threads"},
      {{"--context", "-1"}, "--context"},
      {{"--cache-tokens", "-1"}, "--cache-tokens"},
      {{"--replay-keep", "-1"}, "--replay-keep"},
      {{"--mode", "fast"}, "--mode"},
      {{"--precision", "bf16"}, "--precision"},
      {{"--backend", "tpu"}, "--backend"},
      {{"--speculate", "sometimes"}, "--speculate"},
      {{"--user", "y"}, "--prompt, --user, --chat and --batch"},
      {{"--out", "x"}, "--out: only with --batch"},
      {{"--temperature", "1", "--temperature", "2"}, "--temperature"},
  };
  for (const Case& bad : cases) {
    std::vector<std::string> arguments = {"generate", "--prompt", "x"};
    arguments.insert(arguments.end(), bad.arguments.begin(), bad.arguments.end());
    const ProgramResult result = run_program(arguments);
    const std::string shown = testing::PrintToString(bad.arguments) + " " + result.messages;
    EXPECT_EQ(result.exit_code, 2) << shown;
    EXPECT_EQ(result.output, "") << shown;
    EXPECT_EQ(std::count(result.messages.begin(), result.messages.end(), '\n'), 1) << shown;
    EXPECT_NE(result.messages.find(bad.named), std::string::npos) << shown;
  }
}

TEST(GenerateOptions, OneInputMustBeGiven) {
  const ProgramResult result = run_program({"generate"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.messages.find("exactly one of --prompt, --user, --chat and --batch"), std::string::npos);
}

TEST(GenerateOptions, AConfigurationFileGivesThemAndTheCommandLineWins) {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "generate.toml",
      "user = 'What is the capital of France?'\nthink = false\ntemperature = 0\nmax-tokens = 2\n");
  const ProgramResult two = run_program({"generate", "--config", file});
  EXPECT_EQ(two.exit_code, 0) << two.messages;
  EXPECT_EQ(two.output, "The capital\n");
  EXPECT_EQ(run_program({"generate", "--config", file, "--max-tokens", "3"}).output, "The capital of\n");
}

TEST(GenerateOptions, TheLargestNumberOfTokensMeansUpToTheContext) {
  const ProgramResult result =
      run_program({"generate", "--user", "What is the capital of France?", "--no-think", "--temperature", "0",
                   "--max-tokens", "9223372036854775807"});
  EXPECT_EQ(result.exit_code, 0) << result.messages;
  EXPECT_EQ(result.output, "The capital of France is Paris.\n");
}

}  // namespace
}  // namespace thalweg::app
