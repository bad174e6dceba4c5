// Cases from public reports about structured outputs, E1 to E14.
#include <gtest/gtest.h>

#include "schema/recogniser.hpp"
#include "schema/schema.hpp"

namespace thalweg::schema {
namespace {

using testing::Recogniser;

/// Both ways of holding an output to a schema.
class Checked {
 public:
  explicit Checked(const char* schema) : schema_(parse_schema(schema)), grammar_(to_ebnf(schema_)) {}

  bool valid(const char* text) const { return !validate_text(schema_, text); }
  bool generated(const char* text) const { return grammar_.accepts(text); }

 private:
  Schema schema_;
  Recogniser grammar_;
};

void expect_both(const Checked& schema, const char* text, bool accepted) {
  EXPECT_EQ(schema.valid(text), accepted) << text;
  EXPECT_EQ(schema.generated(text), accepted) << text;
}

TEST(ReportedCase, E1PatternBesideMinLength) {
  const Checked schema(R"({"type":"string","pattern":"^[a-z]+$","minLength":5})");
  expect_both(schema, R"("ab")", false);
  expect_both(schema, R"("abcde")", true);
  expect_both(schema, R"("abcdE")", false);
}

TEST(ReportedCase, E2RequiredNameThatIsNotDeclared) {
  const Checked schema(R"({"type":"object","required":["a"]})");
  expect_both(schema, R"({"a":1})", true);
  expect_both(schema, "{}", false);
}

TEST(ReportedCase, E3MinItemsAlone) {
  const Checked schema(R"({"type":"array","minItems":1})");
  expect_both(schema, "[1]", true);
  expect_both(schema, "[]", false);
}

TEST(ReportedCase, E4AllOfTwoObjects) {
  const Checked schema(R"({"type":"object","allOf":[{"required":["a"]},{"required":["b"]}]})");
  expect_both(schema, R"({"a":1})", false);
  expect_both(schema, R"({"a":1,"b":2})", true);
}

TEST(ReportedCase, E5PropertyNamesBesideAdditionalProperties) {
  const Checked schema(
      R"({"type":"object","propertyNames":{"pattern":"^[a-z]+$"},"additionalProperties":{"type":"integer"}})");
  expect_both(schema, R"({"a":"plain"})", false);
  expect_both(schema, R"({"a":1})", true);
  expect_both(schema, R"({"A":1})", false);
}

TEST(ReportedCase, E6PatternWithAlternativesAtTheTop) {
  const Checked schema(R"({"type":"string","pattern":"^a$|^b$"})");
  expect_both(schema, R"("a")", true);
  expect_both(schema, R"("b")", true);
  expect_both(schema, R"("c")", false);
}

TEST(ReportedCase, E8UniqueItemsOfAnEnumeration) {
  const Checked schema(R"({"type":"array","items":{"enum":[1,2,"x"]},"uniqueItems":true})");
  expect_both(schema, R"([1,"x",2])", true);
  expect_both(schema, "[1,1]", false);
}

TEST(ReportedCase, E8UniqueItemsOfManyValuesAreRefusedByName) {
  const Schema schema =
      parse_schema(R"({"properties":{"a":{"items":{"type":"string"},"uniqueItems":true}}})");
  EXPECT_TRUE(validate_text(schema, R"({"a":["x","x"]})"));
  try {
    to_ebnf(schema);
    FAIL();
  } catch (const SchemaError& error) {
    EXPECT_EQ(error.keyword(), "uniqueItems");
    EXPECT_EQ(error.path(), "/properties/a");
  }
}

TEST(ReportedCase, E8Contains) {
  const Checked schema(R"({"type":"array","items":{"type":"integer"},"contains":{"const":2}})");
  expect_both(schema, "[2,1]", true);
  expect_both(schema, "[1,2,3]", true);
  expect_both(schema, "[1,3]", false);
}

TEST(ReportedCase, E8Not) {
  const Checked schema(R"({"type":"integer","not":{"enum":[1,3]}})");
  expect_both(schema, "2", true);
  expect_both(schema, "3", false);
}

TEST(ReportedCase, E8IfThen) {
  const Checked schema(R"({"type":"object","properties":{"kind":{"enum":["a","b"]},"size":{"type":"integer"}},
    "required":["kind"],"additionalProperties":false,
    "if":{"properties":{"kind":{"const":"a"}}},"then":{"required":["size"]}})");
  expect_both(schema, R"({"kind":"b"})", true);
  expect_both(schema, R"({"kind":"a","size":3})", true);
  expect_both(schema, R"({"kind":"a"})", false);
}

TEST(ReportedCase, E8DependentRequired) {
  const Checked schema(R"({"type":"object","properties":{"card":{"type":"integer"},"name":{"type":"string"}},
    "dependentRequired":{"card":["name"]}})");
  expect_both(schema, R"({"card":1,"name":"n"})", true);
  expect_both(schema, R"({"name":"n"})", true);
  expect_both(schema, R"({"card":1})", false);
}

TEST(ReportedCase, E10PropertyThatMayNotBeThere) {
  const Checked schema(
      R"({"type":"object","properties":{"a":false},"additionalProperties":{"type":"integer"}})");
  expect_both(schema, R"({"b":1})", true);
  expect_both(schema, R"({"a":1})", false);
}

TEST(ReportedCase, E11PropertiesComeInDeclaredOrderAndAreValidInAny) {
  const Checked schema(R"({"type":"object","properties":{"a":{},"b":{}},"required":["a","b"]})");
  expect_both(schema, R"({"a":1,"b":2})", true);
  EXPECT_TRUE(schema.valid(R"({"b":2,"a":1})"));
  EXPECT_FALSE(schema.generated(R"({"b":2,"a":1})"));
}

TEST(ReportedCase, E12ConstantsAreValuesAndHaveOneSpellingApartFromBlanks) {
  const Checked object(R"({"const":{"a":1,"b":"x"}})");
  expect_both(object, R"({"a":1,"b":"x"})", true);
  expect_both(object, R"({"a": 1, "b": "x"})", true);
  expect_both(object, "{\n  \"a\": 1,\n  \"b\": \"x\"\n}", true);
  EXPECT_TRUE(object.valid(R"({"b":"x","a":1.0})"));
  EXPECT_FALSE(object.generated(R"({"b":"x","a":1})"));
  const Checked text(R"({"const":"é"})");
  expect_both(text, "\"é\"", true);
  EXPECT_TRUE(text.valid(R"("\u00e9")"));
  EXPECT_FALSE(text.generated(R"("\u00e9")"));
}

TEST(ReportedCase, E13NumbersAreComparedByValueAndWrittenPlainly) {
  const Checked range(R"({"type":"integer","minimum":-5,"maximum":10})");
  EXPECT_TRUE(range.valid("-0"));
  EXPECT_FALSE(range.generated("-0"));
  for (int i = -7; i <= 12; ++i) expect_both(range, std::to_string(i).c_str(), i >= -5 && i <= 10);
  const Checked positive(R"({"type":"number","exclusiveMinimum":0})");
  EXPECT_TRUE(positive.valid("1e-3"));
  EXPECT_FALSE(positive.generated("1e-3"));
  expect_both(positive, "0.001", true);
  expect_both(positive, "0", false);
  const Checked integer(R"({"type":"integer"})");
  EXPECT_TRUE(integer.valid("1.0"));
  EXPECT_FALSE(integer.generated("1.0"));
  const Checked large(R"({"type":"integer","minimum":9007199254740993})");
  expect_both(large, "9007199254740993", true);
  expect_both(large, "9007199254740992", false);
}

TEST(ReportedCase, E14PatternPropertiesBesideProperties) {
  const Checked schema(R"({"type":"object","properties":{"id":{"type":"integer"}},
    "patternProperties":{"^x_":{"type":"string"}},"additionalProperties":false})");
  expect_both(schema, R"({"id":1,"x_a":"s"})", true);
  expect_both(schema, R"({"id":1,"x_a":2})", false);
  expect_both(schema, R"({"id":1,"y":"s"})", false);
}

TEST(ReportedCase, E14NothingFollowsTheObject) {
  const Checked schema(R"({"type":"object","propertyNames":{"pattern":"^.*$"}})");
  expect_both(schema, R"({"a":1})", true);
  EXPECT_FALSE(schema.generated(R"({"a":1} x)"));
}

}  // namespace
}  // namespace thalweg::schema
