#include "app/settings.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace thalweg::app {
namespace {

using Kind = Setting::Kind;
using Values = std::vector<std::string>;

Setting only(std::string_view text) {
  const auto settings = parse_settings(text, "a.toml");
  EXPECT_EQ(settings.size(), 1U) << text;
  return settings.at(0);
}

std::string error_of(std::string_view text) {
  try {
    parse_settings(text, "a.toml");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Settings, ReadsTextNumbersBooleansAndArrays) {
  const auto settings = parse_settings(
      "# options\n"
      "model = \"models/mini\" # the bundled one\n"
      "\n"
      "max-tokens = 64\r\n"
      "temperature = 0.7\n"
      "stream = true\n"
      "stop = [\"a\", 'b', # two of them\n  \"c\",\n]",
      "a.toml");
  ASSERT_EQ(settings.size(), 5U);
  EXPECT_EQ(settings[0].key, "model");
  EXPECT_EQ(settings[0].values, Values{"models/mini"});
  EXPECT_EQ(settings[0].line, 2U);
  EXPECT_EQ(settings[1].kind, Kind::number);
  EXPECT_EQ(settings[1].values, Values{"64"});
  EXPECT_EQ(settings[2].values, Values{"0.7"});
  EXPECT_EQ(settings[3].kind, Kind::boolean);
  EXPECT_EQ(settings[3].values, Values{"true"});
  EXPECT_TRUE(settings[4].array);
  EXPECT_EQ(settings[4].values, (Values{"a", "b", "c"}));
  EXPECT_EQ(settings[4].line, 7U);
}

TEST(Settings, EmptyFilesAndCommentsAreNoSettings) {
  for (const char* text : {"", "\n\n", "# only a comment", " \t # x\r\n", "\xEF\xBB\xBF"}) {
    EXPECT_TRUE(parse_settings(text, "a.toml").empty()) << text;
  }
}

TEST(Settings, UnderstandsTheEscapesOfBasicStrings) {
  EXPECT_EQ(only(R"(k = "\b\t\n\f\r\"\\\u00e9\u20AC\U0001F600")").values,
            Values{"\b\t\n\f\r\"\\\u00e9\u20ac\U0001F600"});
  EXPECT_EQ(only(R"(k = 'a\n"b"')").values, Values{R"(a\n"b")"});
}

TEST(Settings, TakesQuotedKeys) {
  EXPECT_EQ(only("\"max-tokens\" = 1").key, "max-tokens");
  EXPECT_EQ(only("'a b' = 1").key, "a b");
}

TEST(Settings, NumbersLoseWhatACommandLineDoesNotKnow) {
  const std::vector<std::pair<std::string, std::string>> numbers = {{"0", "0"},
                                                                    {"+5", "5"},
                                                                    {"-7", "-7"},
                                                                    {"1_000_000", "1000000"},
                                                                    {"-0.5", "-0.5"},
                                                                    {"1e6", "1e6"},
                                                                    {"6.02_2E+23", "6.022e23"},
                                                                    {"1E-3", "1e-3"},
                                                                    {"0e0", "0e0"}};
  for (const auto& [written, value] : numbers) {
    const Setting setting = only("k = " + written);
    EXPECT_EQ(setting.kind, Kind::number) << written;
    EXPECT_EQ(setting.values, Values{value}) << written;
  }
}

TEST(Settings, RefusesWhatIsMalformedAndNamesTheLine) {
  const std::vector<std::string> malformed = {
      "k",                    // no value
      "k =",                  // nor here
      "= 1",                  // no key
      "k 1",                  // no equals sign
      "k = 1 2",              // two values
      "k = 1, 2",             // a list needs brackets
      "k = word",             // text needs quotes
      "k = \"a",              // open string
      "k = 'a\n'",            // broken string
      "k = \"a\" x",          // text behind the value
      "k = \"\\q\"",          // unknown escape
      "k = \"\\u12\"",        // short escape
      "k = \"\\ud800\"",      // a surrogate
      "k = \"\\U00110000\"",  // beyond Unicode
      "k = \"\x01\"",         // control character
      "k = 01",               // leading zero
      "k = 1__0",             // two underscores
      "k = 1_",               // underscore at the end
      "k = .5",               // no digit before the point
      "k = 5.",               // nor behind
      "k = 1e",               // empty exponent
      "k = 0x10",             // hexadecimal
      "k = nan",              // no number
      "k = inf",              // nor this one
      "k = True",             // booleans are small
      "k = [1, 2",            // open array
      "k = [1 2]",            // no comma
      "k = [1, \"a\"]",       // two kinds
      "k = [[1]]",            // arrays of arrays
      "k = {a = 1}",          // inline table
      "a.b = 1",              // dotted key
      "[section]",            // table
      "[[list]]",             // array of tables
      "k = \"\"\"a\"\"\"",    // multi-line string
      "k = 1979-05-27",       // date
      "k = 07:32:00",         // time
  };
  for (const std::string& text : malformed) {
    EXPECT_EQ(error_of("first = 1\n" + text).rfind("a.toml:2: ", 0), 0U) << text << "\n"
                                                                         << error_of("first = 1\n" + text);
  }
}

TEST(Settings, RefusesAKeyThatStandsTwice) {
  EXPECT_NE(error_of("k = 1\n\n'k' = 2").find("\"k\" is already set in line 1"), std::string::npos);
}

}  // namespace
}  // namespace thalweg::app
