// The strict subset of JSON Schema, and the form check.
#include <gtest/gtest.h>

#include "text/strict_schema.hpp"

namespace thalweg::testing {
namespace {

std::string strict(const std::string& schema) {
  return to_text(text::strict_schema(parse_json(schema, "test")));
}

std::string strict_error(const std::string& schema) {
  try {
    strict(schema);
  } catch (const text::SchemaError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(StrictSchema, ClosesObjectsAndRequiresEverything) {
  EXPECT_EQ(strict(R"({"type":"object","title":"T","properties":{"a":{"type":"string"},"b":{"type":"null"}},
                       "description":"d"})"),
            R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"null"}},)"
            R"("additionalProperties":false,"required":["a","b"],"description":"d"})");
}

TEST(StrictSchema, KeepsWhatTheSubsetKnowsOfStrings) {
  EXPECT_EQ(
      strict(
          R"({"enum":["a"],"format":"uuid","minLength":3,"pattern":"x","type":"string","description":"d"})"),
      R"({"type":"string","description":"d","pattern":"x","format":"uuid","enum":["a"]})");
}

TEST(StrictSchema, KeepsBoundsOfNumbersButNotTheirEnums) {
  EXPECT_EQ(
      strict(R"({"type":"integer","enum":[1],"multipleOf":2,"minimum":0,"maximum":9,"default":4,"const":4,
                       "exclusiveMinimum":-1,"exclusiveMaximum":10})"),
      R"({"type":"integer","const":4,"default":4,"minimum":0,"maximum":9,"exclusiveMinimum":-1,)"
      R"("exclusiveMaximum":10,"multipleOf":2})");
}

TEST(StrictSchema, KeepsAListOfSimpleTypes) {  // C10
  EXPECT_EQ(strict(R"({"type":["integer","null"]})"), R"({"type":["integer","null"]})");
}

TEST(StrictSchema, GoesIntoItemsAndChoices) {
  EXPECT_EQ(
      strict(
          R"({"anyOf":[{"type":"array","items":{"type":"string","title":"x"},"minItems":1},{"type":"boolean"}]})"),
      R"({"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"boolean"}]})");
}

TEST(StrictSchema, LetsReferencesFollowTheDefinitions) {
  EXPECT_EQ(
      strict(R"({"type":"object","properties":{"a":{"$ref":"#/$defs/node"},"b":{"$ref":"#/definitions/leaf"}},
                       "$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}},
                       "definitions":{"leaf":{"type":"string"}}})"),
      R"({"type":"object","properties":{"a":{"$ref":"#/$def/node"},"b":{"$ref":"#/$def/leaf"}},)"
      R"("additionalProperties":false,"required":["a","b"],)"
      R"("$def":{"node":{"type":"object","properties":{"next":{"$ref":"#/$def/node"}},)"
      R"("additionalProperties":false,"required":["next"]},"leaf":{"type":"string"}}})");
}

TEST(StrictSchema, IsItsOwnStrictForm) {
  const std::string once = strict(R"({"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},
                                      "$defs":{"x":{"type":"number"}}})");
  EXPECT_EQ(strict(once), once);
}

TEST(StrictSchema, RefusesWhatItCannotHold) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type":"object","properties":{"a":{"type":"null"}},"required":[]})",
       "Required properties must match all properties in the object"},
      {R"({"type":"object","properties":{},"required":["a"]})", "Required property 'a' not found in object"},
      {R"({"type":"object","properties":{},"required":"a"})", "required must be a list of property names"},
      {R"({"type":"object","properties":{"a":{"type":"null"}},"required":["a","a"]})",
       "Duplicate required property 'a'"},
      {R"({"type":"object","properties":{"a":{"type":"object"}}})",
       "An object with no properties is not allowed."},
      {R"({"type":"object","additionalProperties":true})", "additionalProperties should not be true"},
      {R"({"type":"object","additionalProperties":{}})", "additionalProperties should not be true"},
      {R"({"description":"any"})", "A strict schema needs one of 'type', 'anyOf' and '$ref'"},
      {R"({"type":"array"})", "An array in a strict schema needs 'items'"},
      {R"({"type":"string","format":"date"})", "Unsupported string format in a strict schema: \"date\""},
      {R"({"type":["string","object"]})", "A list of types may only name simple types"},
      {R"({"type":"text"})", "Unknown type in a strict schema: \"text\""},
      {R"({"type":7})", "Unknown type in a strict schema: 7"},
      {R"({"anyOf":[]})", "anyOf must be a list of schemas"},
      {R"({"anyOf":[true]})", "A strict schema must be a JSON object"},
      {R"({"$ref":"#/$defs/none"})", "$ref '#/$defs/none' names no definition of the schema"},
      {R"({"$ref":"https://x/y"})", "$ref 'https://x/y' is outside the schema"},
      {R"({"$ref":5})", "$ref must be a string"},
      {R"({"type":"null","$defs":{"a":{"type":"null"}},"definitions":{"a":{"type":"null"}}})",
       "Schema definition 'a' appears in more than one place"},
  };
  for (const auto& [schema, expected] : cases) EXPECT_EQ(strict_error(schema), expected) << schema;
}

std::string form_error(const std::string& schema) {
  try {
    text::check_schema_form(parse_json(schema, "test"));
  } catch (const text::SchemaError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SchemaForm, AcceptsUsualSchemas) {
  for (const char* schema :
       {R"({})", R"(true)", R"({"type":["string","null"],"minLength":2.0})", R"({"items":[{"type":"null"}]})",
        R"({"type":"object","properties":{"type":{"type":"string"}},"required":["type"],"x-unknown":5})",
        R"({"allOf":[{"not":{"const":1}}],"$defs":{"a":false},"enum":[]})"}) {
    EXPECT_EQ(form_error(schema), "accepted") << schema;
  }
}

TEST(SchemaForm, NamesThePlaceOfAFault) {
  const std::pair<const char*, const char*> cases[] = {
      {"5", "a schema must be an object or a boolean at ''"},
      {R"({"properties":[]})", "[] is not valid for '/properties'"},
      {R"({"properties":{"a":{"type":"strin"}}})", "\"strin\" is not valid for '/properties/a/type'"},
      {R"({"properties":{"a":null}})", "a schema must be an object or a boolean at '/properties/a'"},
      {R"({"required":["a",1]})", "[\"a\",1] is not valid for '/required'"},
      {R"({"items":{"minItems":-1}})", "-1 is not valid for '/items/minItems'"},
      {R"({"anyOf":[{},{"maxLength":1.5}]})", "1.5 is not valid for '/anyOf/1/maxLength'"},
      {R"({"oneOf":[]})", "[] is not valid for '/oneOf'"},
      {R"({"type":[]})", "[] is not valid for '/type'"},
  };
  for (const auto& [schema, expected] : cases) EXPECT_EQ(form_error(schema), expected) << schema;
}

}  // namespace
}  // namespace thalweg::testing
