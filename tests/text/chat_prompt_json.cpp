// JSON as Python writes it.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>

#include "text/prompt_json.hpp"

namespace thalweg::testing {
namespace {

std::string rewritten(const std::string& json) {
  return text::prompt_json(parse_json(json, "test"));
}

TEST(PromptJson, SeparatesWithBlanks) {
  EXPECT_EQ(rewritten(R"({"a":[1,2,{"b":null}],"c":{},"d":[]})"),
            R"({"a": [1, 2, {"b": null}], "c": {}, "d": []})");
}

TEST(PromptJson, KeepsTheOrderOfMembers) {
  EXPECT_EQ(rewritten(R"({"b":1,"a":2})"), R"({"b": 1, "a": 2})");
}

TEST(PromptJson, EscapesOnlyWhatItMust) {
  EXPECT_EQ(rewritten(R"("\u00e9\u6771\u007f\u2028\/")"), "\"é東\x7f\u2028/\"");
  EXPECT_EQ(rewritten(R"("\"\\\n\r\t\b\f\u0001\u001f")"), R"("\"\\\n\r\t\b\f\u0001\u001f")");
}

TEST(PromptJson, EscapesKeysToo) {
  EXPECT_EQ(rewritten(R"({"a\"b":true})"), R"({"a\"b": true})");
}

// Expected: what Python 3's json.dumps(json.loads(x)) prints, but for integers beyond 64 bits, which go
// through a double.
TEST(PromptJson, WritesNumbersAsPythonDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"0", "0"},
      {"-0", "-0.0"},
      {"-0.0", "-0.0"},
      {"-1", "-1"},
      {"9223372036854775807", "9223372036854775807"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"18446744073709551615", "18446744073709551615"},
      {"18446744073709551616", "1.8446744073709552e+19"},
      {"-9223372036854775809", "-9.223372036854776e+18"},
      {"12345678901234567890123", "1.2345678901234568e+22"},
      {"1.0", "1.0"},
      {"2.50", "2.5"},
      {"1e5", "100000.0"},
      {"0.0001", "0.0001"},
      {"0.00001", "1e-05"},
      {"1e-7", "1e-07"},
      {"1.5e-7", "1.5e-07"},
      {"1e15", "1000000000000000.0"},
      {"1e16", "1e+16"},
      {"123456789012345678.0", "1.2345678901234568e+17"},
      {"1e100", "1e+100"},
      {"5e-324", "5e-324"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"},
      {"0.1", "0.1"},
      {"100.25", "100.25"},
      {"-1234.5e-3", "-1.2345"},
  };
  for (const auto& [given, expected] : cases) EXPECT_EQ(rewritten(given), expected) << given;
}

RC_GTEST_PROP(PromptJson, NumbersReadBackUnchanged, (std::uint64_t bits)) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  RC_PRE(std::isfinite(value));
  std::string out;
  text::append_prompt_number(out, value);
  RC_ASSERT(std::strtod(out.c_str(), nullptr) == value);
  RC_ASSERT(out.find_first_of(".e") != std::string::npos);
}

RC_GTEST_PROP(PromptJson, WritingIsIdempotent, (const std::map<std::string, std::vector<double>>& members)) {
  Json value = Json::object();
  for (const auto& [key, numbers] : members) {
    std::string name;
    for (const char c : key) name += static_cast<char>(c & 0x7f);
    for (const double number : numbers) value[name].push_back(number);
  }
  const std::string once = text::prompt_json(value);
  RC_ASSERT(rewritten(once) == once);
}

}  // namespace
}  // namespace thalweg::testing
