#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"
#include "support/text_data.hpp"

namespace thalweg::app {
namespace {

ProgramResult inspect(const std::string& input, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"inspect", "tokens"});
  return run_program(options, input);
}

std::vector<Json> lines_of(const std::string& output) {
  std::vector<Json> lines;
  std::size_t begin = 0;
  for (std::size_t end; (end = output.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(parse_json(std::string_view(output).substr(begin, end - begin), "output"));
  }
  return lines;
}

TEST(InspectTokens, AnswersTheGoldenCasesLineByLine) {
  const TemporaryFolder folder;
  const std::string tokenizer = folder.write("tokenizer.json", testing::released_tokenizer_json());
  const Json cases = testing::api_cases("tokenize.json");
  std::string input;
  std::vector<Json> expected;
  const auto add = [&](const Json& request, const Json& response) {
    input += to_text(request) + "\n";
    expected.push_back(response);
  };
  for (const Json& c : cases["encode"]) {
    add({{"text", c["text"]}}, {{"ids", c["ids"]}});
    add({{"text", c["text"]}, {"specials", "parse"}}, {{"ids", c["ids"]}});
    add({{"text", c["text"]}, {"specials", "plain"}},
        {{"ids", c.contains("ids_plain") ? c["ids_plain"] : c["ids"]}});
    add({{"ids", c["ids"]}}, {{"text", c["text"]}});
  }
  for (const Json& c : cases["decode_stream"]) {
    add({{"ids", c["ids"]}, {"stream", true}}, {{"pieces", c["pieces"]}});
  }
  const ProgramResult result = inspect(input, {"--tokenizer", tokenizer});
  EXPECT_EQ(result.exit_code, 0) << result.messages;
  EXPECT_EQ(lines_of(result.output), expected);
}

TEST(InspectTokens, TakesTheBundledModelWithoutOptions) {
  const ProgramResult result = inspect("{\"text\": \"<think>\"}\n{\"ids\": [4085, 4086]}\n");
  EXPECT_EQ(result.exit_code, 0) << result.messages;
  EXPECT_EQ(result.output, "{\"ids\":[4085]}\n{\"text\":\"<think></think>\"}\n");
}

TEST(InspectTokens, IdsOutsideTheVocabularyAddNothing) {
  const ProgramResult result = inspect(
      "{\"ids\": [-1, 4096, 2147483647, 2147483648, -9223372036854775808, 18446744073709551615]}\n"
      "{\"ids\": [-1, 4085], \"stream\": true}\n");
  EXPECT_EQ(result.exit_code, 0) << result.messages;
  EXPECT_EQ(result.output, "{\"text\":\"\"}\n{\"pieces\":[\"\",\"<think>\"]}\n");
}

TEST(InspectTokens, MalformedLinesAreNamedByNumber) {
  const std::pair<const char*, const char*> cases[] = {
      {"{", "thalweg: line 2: not valid JSON"},
      {"", "thalweg: line 2: not valid JSON"},
      {"{\"text\":\"\xFF\"}", "thalweg: line 2: not valid JSON"},
      {"7", "thalweg: line 2: expected an object, found 7"},
      {"{}", "thalweg: line 2: expected either \"text\" or \"ids\", found neither"},
      {"{\"text\":\"\",\"ids\":[]}", "thalweg: line 2: expected either \"text\" or \"ids\", found both"},
      {"{\"text\":\"a\",\"text\":\"b\"}", "thalweg: line 2: member \"text\" appears twice"},
      {"{\"text\":1}", "thalweg: line 2: text: expected a string, found 1"},
      {"{\"text\":\"\",\"specials\":\"none\"}",
       "thalweg: line 2: specials: expected \"parse\" or \"plain\", found \"none\""},
      {"{\"text\":\"\",\"stream\":true}", "thalweg: line 2: stream: unknown member"},
      {"{\"ids\":7}", "thalweg: line 2: ids: expected an array of integers, found 7"},
      {"{\"ids\":[1,1.5]}", "thalweg: line 2: ids[1]: expected an integer, found 1.5"},
      {"{\"ids\":[],\"stream\":1}", "thalweg: line 2: stream: expected a boolean, found 1"},
  };
  for (const auto& [line, message] : cases) {
    const ProgramResult result = inspect("{\"text\":\"\"}\n" + std::string(line) + "\n");
    EXPECT_EQ(result.exit_code, 3) << line;
    EXPECT_EQ(result.output, "{\"ids\":[]}\n");
    EXPECT_TRUE(result.messages.starts_with(message)) << result.messages;
  }
}

TEST(InspectTokens, AWrongTokenizerFileIsNamed) {
  const ProgramResult missing = inspect("", {"--tokenizer", "/nowhere/tokenizer.json"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_TRUE(missing.messages.starts_with("thalweg: /nowhere/tokenizer.json: ")) << missing.messages;
  const TemporaryFolder folder;
  const std::string broken = folder.write("tokenizer.json", "{\"version\": \"2\"}");
  const ProgramResult wrong = inspect("", {"--tokenizer", broken});
  EXPECT_EQ(wrong.exit_code, 3);
  EXPECT_EQ(wrong.messages, "thalweg: " + broken + ": version: expected \"1.0\", found \"2\"\n");
}

TEST(InspectTokens, ModelAndTokenizerExcludeEachOther) {
  EXPECT_EQ(inspect("", {"--model", "x", "--tokenizer", "y"}).exit_code, 2);
}

}  // namespace
}  // namespace thalweg::app
