// What the validator says, where the public suite says only that it objects.
#include <gtest/gtest.h>

#include "schema/schema.hpp"

namespace thalweg::schema {
namespace {

TEST(Violation, NamesThePlaceInTheValueAndTheKeyword) {
  const Schema schema = parse_schema(R"({
    "properties": {"list": {"items": {"type": "object", "required": ["n"],
                                      "properties": {"n": {"minimum": 2}}, "additionalProperties": false}}}})");
  const auto violation = [&](const char* text) {
    const auto found = validate_text(schema, text);
    return found ? found->path + " " + found->keyword : "";
  };
  EXPECT_EQ(violation(R"({"list":[{"n":2}]})"), "");
  EXPECT_EQ(violation(R"({"list":[{"n":2},{"n":1}]})"), "/list/1/n minimum");
  EXPECT_EQ(violation(R"({"list":[{}]})"), "/list/0 required");
  EXPECT_EQ(violation(R"({"list":[3]})"), "/list/0 type");
  EXPECT_EQ(violation(R"({"list":[{"n":3,"a/b":1}]})"), "/list/0/a~1b additionalProperties");
}

TEST(Violation, IsTheSameForJsonAndItsText) {
  const Schema schema = parse_schema(R"({"maximum": 0.3})");
  EXPECT_FALSE(validate(schema, Json(0.3)));
  EXPECT_TRUE(validate(schema, Json(0.5)));
  EXPECT_FALSE(validate_text(schema, "0.30"));
  EXPECT_TRUE(validate_text(schema, "0.3000000000000000000000000001"));
}

TEST(Validation, ComparesNumbersAsExactDecimals) {
  const Schema schema = parse_schema(R"({"exclusiveMinimum": 9007199254740992, "multipleOf": 1})");
  EXPECT_FALSE(validate_text(schema, "9007199254740993"));
  EXPECT_TRUE(validate_text(schema, "9007199254740992"));
  EXPECT_TRUE(validate_text(schema, "9007199254740992.0"));
  EXPECT_TRUE(validate_text(schema, "9007199254740992.5"));
  EXPECT_FALSE(validate_text(schema, "9.007199254740993e15"));
  EXPECT_FALSE(validate_text(schema, "123456789012345678901234567890"));
}

TEST(Validation, OfTextThatIsNotJsonIsAnInputError) {
  for (const char* text : {"", "{", "1 2", "[1,]", "01", "+1", "\"\xFF\"", "\"\\ud800\""})
    EXPECT_THROW(validate_text(parse_schema("true"), text), InputError) << text;
}

TEST(Validation, TakesTheLastValueOfARepeatedMember) {
  const Schema schema = parse_schema(R"({"properties":{"a":{"const":2}},"maxProperties":2})");
  EXPECT_FALSE(validate_text(schema, R"({"a":1,"b":0,"a":2})"));
  EXPECT_TRUE(validate_text(schema, R"({"a":2,"b":0,"a":1})"));
}

TEST(Validation, FormatsAreConditionsUnlessTheyAreAskedToBeRemarks) {
  const char* schema = R"({"format": "date"})";
  EXPECT_TRUE(validate_text(parse_schema(schema), R"("2023-02-29")"));
  EXPECT_FALSE(validate_text(parse_schema(schema), R"("2024-02-29")"));
  EXPECT_FALSE(validate_text(parse_schema(schema, {.assert_formats = false}), R"("2023-02-29")"));
}

TEST(Validation, ManyStepsEndInAnErrorAndNotInAWait) {
  // Every level doubles the work: 2^30 steps if nothing stopped it.
  std::string schema = R"({"$defs":{"d0":{"type":"null"})";
  for (int i = 1; i <= 30; ++i)
    schema += fmt::format(R"(,"d{}":{{"anyOf":[{{"$ref":"#/$defs/d{}"}},{{"$ref":"#/$defs/d{}"}}]}})", i,
                          i - 1, i - 1);
  EXPECT_THROW(validate_text(parse_schema(schema + R"(},"$ref":"#/$defs/d30"})"), "1"), InputError);
}

}  // namespace
}  // namespace thalweg::schema
