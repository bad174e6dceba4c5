#include "base/json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace thalweg {
namespace {

std::string error_of(std::string_view text, JsonLimits limits = {}) {
  try {
    parse_json(text, "request", limits);
  } catch (const InputError& error) {
    EXPECT_EQ(error.subject(), "request");
    return error.what();
  }
  return "";
}

std::string nested(std::size_t depth, const std::string& open, const std::string& close) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += open;
  text += "1";
  for (std::size_t i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(Json, KeepsTheOrderOfMembers) {
  EXPECT_EQ(to_text(parse_json(R"({"z": 1, "a": {"y": 2, "b": 3}})", "request")),
            R"({"z":1,"a":{"y":2,"b":3}})");
}

TEST(Json, KeepsIntegersOf64BitsExact) {
  EXPECT_EQ(parse_json("18446744073709551615", "request").get<std::uint64_t>(),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse_json("-9223372036854775808", "request").get<std::int64_t>(),
            std::numeric_limits<std::int64_t>::min());
}

TEST(Json, RefusesMalformedText) {
  const std::vector<std::string> malformed = {
      "",                         // nothing
      " ",                        // blanks only
      "{",                        // open object
      "[1, 2",                    // open array
      "[1,]",                     // trailing comma
      "{\"a\" 1}",                // no colon
      "{a: 1}",                   // bare key
      "{\"a\": 1,}",              // trailing comma
      "1 2",                      // two documents
      "{} x",                     // text behind the document
      "nul",                      // half a literal
      "NaN",                      // no such number in JSON
      "[Infinity]",               // nor this one
      "01",                       // leading zero
      "1.",                       // no digits behind the point
      "+1",                       // sign
      "1e400",                    // larger than a double
      "'a'",                      // wrong quotes
      "\"a",                      // open string
      "\"\x01\"",                 // control character
      "\"\\x\"",                  // unknown escape
      "\"\\u12\"",                // short escape
      "\"\\ud800\"",              // lone high surrogate
      "\"\\udc00\"",              // lone low surrogate
      "\"\xFF\"",                 // not UTF-8
      "\"\xC0\xAF\"",             // overlong
      "\"\xED\xA0\x80\"",         // surrogate in UTF-8
      "\"\xF4\x90\x80\x80\"",     // beyond the last character
      "\"\xE2\x82\"",             // cut character
      "// c\n1",                  // comment
      std::string("\"a\0b\"", 5)  // zero byte
  };
  for (const std::string& text : malformed) {
    EXPECT_NE(error_of(text).find("not valid JSON"), std::string::npos) << text;
  }
}

TEST(Json, NamesSubjectAndPlaceOfTheFault) {
  const std::string message = error_of("{\"a\": tru}");
  EXPECT_EQ(message.rfind("request: not valid JSON: ", 0), 0U) << message;
  EXPECT_NE(message.find("column 10"), std::string::npos) << message;
  EXPECT_EQ(message.find("json.exception"), std::string::npos) << message;
}

TEST(Json, RefusesZeroBytesInsteadOfEndingThere) {
  EXPECT_EQ(error_of(std::string_view("[1]\0junk", 8)), "request: not valid JSON: a zero byte at offset 3");
  EXPECT_NE(error_of(std::string_view("[1\0]", 4)), "");
}

TEST(Json, AcceptsNestingUpToTheLimitAndNoDeeper) {
  for (const std::size_t limit : {1U, 5U, 128U}) {
    EXPECT_EQ(error_of(nested(limit, "[", "]"), {.depth = limit}), "");
    EXPECT_EQ(error_of(nested(limit, "{\"a\":", "}"), {.depth = limit}), "");
    EXPECT_NE(error_of(nested(limit + 1, "[", "]"), {.depth = limit}).find("nested deeper"),
              std::string::npos);
    EXPECT_NE(error_of(nested(limit + 1, "{\"a\":", "}"), {.depth = limit}).find("nested deeper"),
              std::string::npos);
  }
}

TEST(Json, RefusesAMillionLevelsWithoutRunningOutOfStack) {
  EXPECT_NE(error_of(std::string(1'000'000, '[')).find("nested deeper than 128 levels"), std::string::npos);
}

std::string object_of(std::size_t members) {
  std::string text = "{";
  for (std::size_t i = 0; i < members; ++i) text += fmt::format("{}\"k{}\": {{}}", i == 0 ? "" : ", ", i);
  return text + "}";
}

TEST(Json, RefusesObjectsOfMoreThan4096Members) {
  EXPECT_EQ(error_of(object_of(4096)), "");
  EXPECT_EQ(error_of(object_of(4097)), "request: more than 4096 members in one object");
  EXPECT_EQ(error_of("[" + object_of(4096) + ", " + object_of(4096) + "]"), "");
}

TEST(Json, KeepsTheLastOfRepeatedMembersInTheFirstPlaceUnlessToldToRefuse) {
  EXPECT_EQ(to_text(parse_json(R"({"a": 1, "b": 2, "a": 3})", "request")), R"({"a":3,"b":2})");
  EXPECT_NE(error_of(R"({"a": 1, "b": 2, "a": 3})", {.unique_keys = true}).find("member \"a\" appears twice"),
            std::string::npos);
  EXPECT_NE(
      error_of(R"([{"x": {"a": 1, "\u0061": 3}}])", {.unique_keys = true}).find("member \"a\" appears twice"),
      std::string::npos);
}

TEST(Json, AllowsTheSameMemberInDifferentObjects) {
  EXPECT_EQ(error_of(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})", {.unique_keys = true}), "");
}

TEST(Json, WritesIllFormedTextAsReplacementCharacters) {
  EXPECT_EQ(to_text(Json("a\xFFz")), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(to_text(Json("half \xE2\x82")), "\"half \xEF\xBF\xBD\"");
}

RC_GTEST_PROP(Json, ReadsBackWhatItWrote,
              (const std::vector<std::string>& texts, const std::vector<int>& numbers)) {
  const Json value = {{"texts", texts}, {"numbers", numbers}};
  const std::string text = to_text(value);
  RC_ASSERT(to_text(parse_json(text, "request")) == text);
}

}  // namespace
}  // namespace thalweg
