// What grammars of schemas have and lack, where the public suite and the reported cases do not say it.
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

#include "schema/recogniser.hpp"
#include "schema/schema.hpp"
#include "support/sanitized.hpp"

namespace thalweg::schema {
namespace {

using testing::Recogniser;

struct Texts {
  const char* schema;
  std::vector<const char*> generated;
  std::vector<const char*> not_generated;
};

class GrammarOf : public ::testing::TestWithParam<Texts> {};

TEST_P(GrammarOf, HasExactlyValidTexts) {
  const Schema schema = parse_schema(GetParam().schema);
  const Recogniser grammar(to_ebnf(schema));
  for (const char* text : GetParam().generated) {
    EXPECT_TRUE(grammar.accepts(text)) << text;
    EXPECT_FALSE(validate_text(schema, text)) << text;
  }
  for (const char* text : GetParam().not_generated) EXPECT_FALSE(grammar.accepts(text)) << text;
}

INSTANTIATE_TEST_SUITE_P(
    Table, GrammarOf,
    ::testing::Values(
        Texts{"true",
              {"null", "1", "-0", "2.5e-3", "\"\"", R"("\u00e9\/\ud83d\ude00")", "[]", "[1, [true]]",
               R"({"a": {"b": null}})"},
              {"", "nul", "01", "1.", "1e999", "\"\n\"", R"("\ud83d")", R"("\ude00")", R"("\x41")", "[1,]",
               "{\"a\"}", "1 "}},
        Texts{R"({"properties":{"a":{"type":"integer"}}})",
              {"3", "\"x\"", "[{}]", "{}", R"({"a":1})", R"({"b":"x"})", R"({"a":1,"b":"x"})"},
              {R"({"a":"x"})", R"({"b":"x","a":1})"}},
        Texts{R"({"type":"number","minimum":-1.5,"maximum":2.25})",
              {"-1.5", "-1.49", "0", "-0.1", "2.25", "2.2499", "1"},
              {"-1.51", "-2", "2.26", "3", "10", "2.251", "-0", "1.0", "1e0"}},
        Texts{R"({"type":"number","multipleOf":0.25,"exclusiveMaximum":1})",
              {"0", "0.25", "0.5", "-3.75", "-100"},
              {"1", "0.3", "0.125", "1.25"}},
        Texts{R"({"type":"integer","multipleOf":7,"minimum":0})",
              {"0", "7", "14", "700", "77"},
              {"1", "-7", "15", "07"}},
        Texts{R"({"type":"integer","multipleOf":1.5})", {"0", "3", "-6"}, {"1", "2", "1.5"}},
        Texts{R"({"type":"string","minLength":2,"maxLength":3})",
              {R"("ab")", R"("é😀")", R"("\n\"")", R"("\u0041b")"},
              {R"("a")", R"("abcd")", R"("é")"}},
        Texts{R"({"type":"string","maxLength":1})", {R"("")", R"("😀")"}, {R"("ab")"}},
        Texts{R"({"type":"string","minLength":2})",
              {R"("ab")", R"("abcdefghijklmnopqrst")"},
              {R"("a")", R"("")"}},
        Texts{R"({"type":"string","minLength":1,"maxLength":17})",
              {R"("a")", R"("abcdefghijklmnopq")"},
              {R"("")", R"("abcdefghijklmnopqr")"}},
        Texts{R"({"type":"string","minLength":1,"maxLength":16})",
              {R"("a")", R"("abcdefghijklmnop")"},
              {R"("")", R"("abcdefghijklmnopq")"}},
        Texts{R"({"type":"string","pattern":"\"|\\\\|\n"})",
              {R"("a\"b")", R"("\\")", R"("\n")"},
              {R"("ab")", R"("\u000a")"}},
        Texts{R"({"type":"string","pattern":"^(?:[a-z]{2,4}-)+\\d$"})",
              {R"("ab-1")", R"("abc-defg-9")"},
              {R"("a-1")", R"("ab-")"}},
        Texts{R"({"type":"string","format":"date-time"})",
              {R"("2024-02-29T23:59:59Z")", R"("2023-01-31t00:00:00.25+01:30")"},
              {R"("2023-02-29T00:00:00Z")", R"("2023-01-31")"}},
        Texts{R"({"type":"string","format":"uuid"})",
              {R"("2eb8aa08-aa98-11ea-b4aa-73b441d16380")"},
              {R"("2eb8aa08")"}},
        Texts{R"({"enum":["red","green",3,null,[1,"a"]]})",
              {R"("red")", R"("green")", "3", "null", R"([1,"a"])", R"([1, "a"])"},
              {R"("re")", "4", "3.0", "[1]"}},
        Texts{
            R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":1})",
            {"[1]", R"([1,"a"])", "[\n  1\n]"},
            {"[]", R"(["a"])", R"([1,"a",2])"}},
        Texts{R"({"type":"array","items":{"type":"boolean"},"minItems":2,"maxItems":3})",
              {"[true,false]", "[true,true,true]"},
              {"[true]", "[true,true,true,true]"}},
        Texts{
            R"({"type":"array","items":{"type":"integer"},"contains":{"minimum":5},"minContains":2,"maxContains":2})",
            {"[5,6]", "[1,7,2,5]"},
            {"[5]", "[5,6,7]", "[]"}},
        Texts{
            R"({"type":"object","minProperties":1,"maxProperties":2,"additionalProperties":{"type":"null"}})",
            {R"({"a":null})", R"({"a":null,"b":null})"},
            {"{}", R"({"a":null,"b":null,"c":null})"}},
        Texts{
            R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"}},
                  "additionalProperties":false,"minProperties":2})",
            {R"({"a":1,"b":1})", R"({"b":1,"c":1})", R"({"a":1,"c":1})", R"({"a":1,"b":1,"c":1})"},
            {"{}", R"({"a":1})", R"({"a":1,"a":1})"}},
        Texts{
            R"({"oneOf":[{"type":"object","properties":{"t":{"const":"a"},"n":{"type":"integer"}},"required":["t"]},
                           {"type":"object","properties":{"t":{"const":"b"},"s":{"type":"string"}},"required":["t"]}]})",
            {R"({"t":"a","n":1})", R"({"t":"b","s":"x"})", R"({"t":"b"})"},
            {R"({"t":"a","n":"x"})", R"({"t":"c"})", "{}"}},
        Texts{R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", {"1", "2.5", "\"a\""}, {"3", "1.5"}},
        Texts{R"({"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},
                  "next":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]}},"required":["v","next"],
                  "additionalProperties":false}}})",
              {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":null}})"},
              {R"({"v":1})", R"({"v":1,"next":{}})"}},
        Texts{R"({"type":"object","allOf":[{"properties":{"a":{"type":"integer"}}}],"properties":{"b":true},
                  "unevaluatedProperties":false})",
              {"{}", R"({"b":"x","a":1})"},
              {R"({"c":1})", R"({"a":"x"})"}},
        Texts{R"({"type":["string","null"]})", {"null", R"("x")"}, {"1", "[]"}}));

TEST(Grammar, CompactHasNoBlanks) {
  const Schema schema =
      parse_schema(R"({"type":"object","properties":{"a":{"type":"array"}},"required":["a"]})");
  const Recogniser grammar(to_ebnf(schema, {.whitespace = Whitespace::compact}));
  EXPECT_TRUE(grammar.accepts(R"({"a":[1,2]})"));
  EXPECT_FALSE(grammar.accepts(R"({"a": [1,2]})"));
  EXPECT_FALSE(grammar.accepts(R"({"a":[1, 2]})"));
}

TEST(Grammar, CarriesTheNameOfItsFirstRule) {
  const std::string text = to_ebnf(parse_schema(R"({"type":"object"})"), {.root = "arguments"});
  EXPECT_TRUE(text.starts_with("arguments ::= "));
  EXPECT_EQ(text.find("root"), std::string::npos);
}

TEST(Grammar, OfASchemaThatNothingSatisfiesIsRefused) {
  for (const char* schema :
       {"false", R"({"type":"integer","minimum":3,"maximum":2})", R"({"enum":[]})",
        R"({"allOf":[{"const":1},{"const":2}]})",
        R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
        R"({"type":"string","pattern":"a^"})", R"({"type":"string","minLength":3,"maxLength":2})"})
    EXPECT_THROW(to_ebnf(parse_schema(schema)), SchemaError) << schema;
}

struct Refused {
  const char* schema;
  const char* keyword;
  const char* path;
};

TEST(Grammar, ThatCannotBeHeldIsRefusedByKeywordAndPlace) {
  const Refused table[] = {
      {R"({"items":{"multipleOf":0.123456789}})", "multipleOf", "/items"},
      {R"({"items":{"minimum":1e90}})", "minimum", "/items"},
      {R"({"items":{"pattern":"^[ab]*a[ab]{9}$","format":"email"},"minItems":1})", "", ""},
      {R"({"items":{"pattern":"a","minLength":9000}})", "pattern", "/items"},
      {R"({"properties":{"a":{"minProperties":2}}})", "minProperties", "/properties/a"},
      {R"({"not":{"uniqueItems":true}})", "uniqueItems", ""},
  };
  for (const Refused& entry : table) {
    try {
      to_ebnf(parse_schema(entry.schema));
      if (*entry.keyword != '\0') ADD_FAILURE() << "accepted: " << entry.schema;
    } catch (const SchemaError& error) {
      EXPECT_EQ(error.keyword(), entry.keyword) << error.what();
      EXPECT_EQ(error.path(), entry.path) << error.what();
    }
  }
}

// `form` with each number below `count`, joined by commas.
std::string many(const char* form, int count) {
  std::vector<std::string> list;
  for (int i = 0; i < count; ++i) list.push_back(fmt::format(fmt::runtime(form), i));
  return fmt::format("{}", fmt::join(list, ","));
}

TEST(Grammar, OfAHostileSchemaIsWrittenOrRefusedWithinASecond) {
  const std::string optional = many(R"("p{}":{{"type":"string"}})", 2000);
  const std::vector<std::string> schemas{
      "{\"properties\":{" + optional + "}}",
      "{\"properties\":{" + optional + "},\"minProperties\":500,\"maxProperties\":900}",
      "{\"oneOf\":[" + many(R"({{"minimum":{}}})", 60) + "]}",
      "{\"oneOf\":[" + many(R"({{"properties":{{"a{}":{{"type":"string"}}}}}})", 40) + "]}",
      "{\"allOf\":[" + many(R"({{"anyOf":[{{"required":["a{0}"]}},{{"required":["b{0}"]}}]}})", 40) + "]}",
      "{\"not\":{\"properties\":{" + optional + "}}}",
      "{\"not\":{\"allOf\":[" + many(R"({{"not":{{"properties":{{"a{}":{{"type":"null"}}}}}}}})", 40) + "]}}",
      "{\"patternProperties\":{" + many(R"("^.*{0}":{{"minimum":{0}}})", 30) + "}}",
      "{\"enum\":[" + many("\"value {}\"", 4000) + "]}",
      "{\"anyOf\":[" + many(R"({{"pattern":"^a{{{}}}$"}})", 200) + "],\"minLength\":100}",
      R"({"maxLength":1000000000000,"maxItems":1000000000000,"minProperties":1000000000000})",
      R"({"contains":{"type":"integer"},"minContains":1000,"maxContains":2000})",
      "{\"dependentRequired\":{" + many(R"("a{0}":["b{0}","c{0}"])", 40) + "}}",
      "{\"anyOf\":[" + many(R"({{"required":["a{}"]}})", 30) + "],\"unevaluatedProperties\":false}",
  };
  for (const std::string& schema : schemas) {
    const std::clock_t begin = std::clock();
    try {
      to_ebnf(parse_schema(schema));
    } catch (const SchemaError&) {
    }
    EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC * (thalweg::testing::kSanitized ? 10 : 1))
        << schema.substr(0, 100);
  }
}

}  // namespace
}  // namespace thalweg::schema
