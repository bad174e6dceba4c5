// Schemas that are refused: by keyword and place, and quickly.
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <tuple>

#include "schema/schema.hpp"

namespace thalweg::schema {
namespace {

struct Refused {
  const char* schema;
  const char* keyword;
  const char* path;
};

class MalformedSchema : public testing::TestWithParam<Refused> {};

TEST_P(MalformedSchema, IsRefusedByKeywordAndPlace) {
  try {
    parse_schema(GetParam().schema);
    FAIL() << "accepted: " << GetParam().schema;
  } catch (const SchemaError& error) {
    EXPECT_EQ(error.keyword(), GetParam().keyword) << error.what();
    EXPECT_EQ(error.path(), GetParam().path) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, MalformedSchema,
    testing::Values(
        Refused{"3", "", ""}, Refused{"null", "", ""}, Refused{"[]", "", ""}, Refused{"\"string\"", "", ""},
        Refused{R"s({"type":"text"})s", "type", ""}, Refused{R"s({"type":[]})s", "type", ""},
        Refused{R"s({"type":3})s", "type", ""}, Refused{R"s({"type":["string",1]})s", "type", ""},
        Refused{R"s({"minLenght":3})s", "minLenght", ""}, Refused{R"s({"nullable":true})s", "nullable", ""},
        Refused{R"s({"properties":[]})s", "properties", ""},
        Refused{R"s({"properties":{"a":1}})s", "", "/properties/a"},
        Refused{R"s({"properties":{"a/b~c":{"type":1}}})s", "type", "/properties/a~1b~0c"},
        Refused{R"s({"items":[{}]})s", "items", ""},
        Refused{R"s({"additionalItems":false})s", "additionalItems", ""},
        Refused{R"s({"prefixItems":[]})s", "prefixItems", ""},
        Refused{R"s({"prefixItems":{}})s", "prefixItems", ""}, Refused{R"s({"anyOf":[]})s", "anyOf", ""},
        Refused{R"s({"anyOf":[{},7]})s", "", "/anyOf/1"}, Refused{R"s({"required":"a"})s", "required", ""},
        Refused{R"s({"required":[1]})s", "required", ""}, Refused{R"s({"minItems":-1})s", "minItems", ""},
        Refused{R"s({"minItems":1.5})s", "minItems", ""}, Refused{R"s({"maxLength":"3"})s", "maxLength", ""},
        Refused{R"s({"multipleOf":0})s", "multipleOf", ""},
        Refused{R"s({"multipleOf":-2})s", "multipleOf", ""}, Refused{R"s({"minimum":"0"})s", "minimum", ""},
        Refused{R"s({"enum":"a"})s", "enum", ""}, Refused{R"s({"uniqueItems":1})s", "uniqueItems", ""},
        Refused{R"s({"pattern":"("})s", "pattern", ""}, Refused{R"s({"pattern":"a)"})s", "pattern", ""},
        Refused{R"s({"pattern":"[a"})s", "pattern", ""}, Refused{R"s({"pattern":"[z-a]"})s", "pattern", ""},
        Refused{R"s({"pattern":"a**"})s", "pattern", ""}, Refused{R"s({"pattern":"*"})s", "pattern", ""},
        Refused{R"s({"pattern":"a{3,1}"})s", "pattern", ""},
        Refused{R"s({"pattern":"(?=a)"})s", "pattern", ""},
        Refused{R"s({"pattern":"(?<!a)"})s", "pattern", ""},
        Refused{R"s({"pattern":"(a)\\1"})s", "pattern", ""},
        Refused{R"s({"pattern":"\\bword"})s", "pattern", ""},
        Refused{R"s({"pattern":"\\p{L}"})s", "pattern", ""},
        Refused{R"s({"pattern":"\\ud800"})s", "pattern", ""}, Refused{R"s({"pattern":"\\"})s", "pattern", ""},
        Refused{R"s({"patternProperties":{"(":{}}})s", "patternProperties", ""},
        Refused{R"s({"format":"colour"})s", "format", ""}, Refused{R"s({"format":7})s", "format", ""},
        Refused{R"s({"$ref":"#/$defs/a"})s", "$ref", ""},
        Refused{R"s({"$ref":"https://example.com/a"})s", "$ref", ""},
        Refused{R"s({"items":{"$ref":7}})s", "$ref", "/items"},
        Refused{R"s({"const":{"a":{}},"$ref":"#/const/a"})s", "$ref", ""},
        Refused{R"s({"$ref":"#"})s", "$ref", ""},
        Refused{R"s({"allOf":[{"anyOf":[{"$ref":"#"}]}]})s", "$ref", ""},
        Refused{R"s({"$dynamicRef":"#a"})s", "$dynamicRef", ""},
        Refused{R"s({"$schema":"http://json-schema.org/draft-04/schema#"})s", "$schema", ""},
        Refused{R"s({"$vocabulary":{}})s", "$vocabulary", ""},
        Refused{R"s({"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}})s", "$anchor", "/$defs/b"},
        Refused{R"s({"dependentRequired":{"a":1}})s", "dependentRequired", ""},
        Refused{R"s({"dependentSchemas":{"a":1}})s", "", "/dependentSchemas/a"}));

TEST(HostileSchema, TextThatIsNotJsonIsAnInputError) {
  for (const char* text : {"", "{", "{\"a\":1,\"a\":2}", "{\"a\":\"\xFF\"}", "{} {}", "NaN"})
    EXPECT_THROW(parse_schema(text), InputError) << text;
}

std::string repeated(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

class HostileSchemaTime : public testing::TestWithParam<std::string> {};

TEST_P(HostileSchemaTime, IsRefusedWithinASecond) {
  const std::clock_t begin = std::clock();  // of the processor: other work does not count
  EXPECT_THROW(parse_schema(GetParam()), InputError);
  EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC);
}

INSTANTIATE_TEST_SUITE_P(
    Table, HostileSchemaTime,
    testing::Values(repeated("{\"items\":", 20'000) + "{}" + repeated("}", 20'000), repeated("[", 20'000),
                    "{\"enum\":[" + repeated("1,", 400'000) + "1]}",
                    "{\"anyOf\":[" + repeated("{},", 20'000) + "{}]}", R"s({"pattern":"(a|b)*a(a|b){30}"})s",
                    R"s({"pattern":"((a{100}){100}){100}"})s", R"s({"pattern":"(x+x+)+y(.?){5000}"})s",
                    "{\"pattern\":\"" + repeated("(", 1000) + "\"}",
                    "{\"pattern\":\"" + repeated("a", 100'000) + "\"}", R"s({"pattern":"[^a]{9000}"})s"));

}  // namespace
}  // namespace thalweg::schema
