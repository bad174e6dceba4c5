// What every kind of constraint accepts and refuses, with the vocabulary of `mini`.
#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "base/error.hpp"
#include "grammar/compiler.hpp"
#include "support/sanitized.hpp"
#include "support/text_data.hpp"

namespace thalweg::grammar {
namespace {

using Kind = Constraint::Kind;

const text::Tokenizer& mini() {
  static const auto tokenizer =
      text::Tokenizer::load(std::string(THALWEG_SOURCE_DIR) + "/models/mini/tokenizer.json");
  return tokenizer;
}

constexpr std::int32_t kEos = 1;

Compiler& compiler() {
  static Compiler instance(mini(), mini().vocab_size(), kEos);
  return instance;
}

std::shared_ptr<const CompiledGrammar> compile(const Constraint& constraint) {
  return compiler().compile(constraint).get();
}

bool allows(const std::vector<std::uint32_t>& mask, std::int32_t token) {
  return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

/// Feeds `tokens`; every mask must agree with what is accepted. True: all taken, and the output may end.
bool takes_tokens(const Constraint& constraint, const std::vector<text::TokenId>& tokens) {
  Matcher matcher(compile(constraint));
  std::vector<std::uint32_t> mask(matcher.mask_words());
  for (const text::TokenId token : tokens) {
    const bool masked = matcher.fill_mask(mask);
    const bool allowed = !masked || allows(mask, token);
    EXPECT_EQ(matcher.accept(token), allowed) << token;
    if (!allowed) return false;
  }
  const bool masked = matcher.fill_mask(mask);
  EXPECT_EQ(!masked || allows(mask, kEos), matcher.finished());
  return matcher.finished();
}

bool takes(const Constraint& constraint, const std::string& text) {
  return takes_tokens(constraint, mini().encode_plain(text));
}

Constraint regex(const std::string& text) {
  return {.kind = Kind::regex, .text = text};
}
Constraint ebnf(const std::string& text) {
  return {.kind = Kind::ebnf, .text = text};
}

struct Accepted {
  const char* regex;
  const char* text;
  bool accepted;
};

TEST(Regex, MatchesWholeOutputs) {
  const Accepted cases[] = {{"^a$|^b$", "a", true},
                            {"^a$|^b$", "b", true},
                            {"^a$|^b$", "c", false},
                            {"a|b", "ab", false},
                            {"[0-9]{3}-\\d+", "123-4", true},
                            {"[0-9]{3}-\\d+", "12-4", false},
                            {"(?:ab)*c", "ababc", true},
                            {"(?<name>x|)y", "y", true},
                            {"[^a-z]", "q", false},
                            {"[^a-z]", "Q", true},
                            {".", "\n", false},
                            {".", "é", true},
                            {"\\u00e9+?", "éé", true},
                            {"\\ud83d\\ude00", "😀", true},
                            {"[\\w-]+", "a-b_9", true},
                            {"[\\w-]+", "a b", false},
                            {"a{0}b", "b", true},
                            {"a{2,}", "aaaa", true},
                            {"a{2,}", "a", false},
                            {"\\s", "\t", true},
                            {"", "", true},
                            {"\\S+", "x\xE2\x80\xA8", false}};
  for (const Accepted& c : cases)
    EXPECT_EQ(takes(regex(c.regex), c.text), c.accepted) << c.regex << " " << c.text;
}

TEST(Regex, RefusesWhatItDoesNotHonourAndNamesThePlace) {
  for (const char* text : {"(?=a)",   "(?!a)",
                           "(?<=a)b", "(?<!a)b",
                           "(a)\\1",  "\\bword",
                           "\\p{L}",  "(?i)a",
                           "a**",     "a++",
                           "(a",      "a)",
                           "[a",      "[]",
                           "[z-a]",   "a{3,2}",
                           "a{",      "*a",
                           "a^b",     "a$b",
                           "(^a)",    "\\ud800",
                           "\\q",     "[[:alpha:]]",
                           "\\",      "a{99999999999999999999}",
                           "\xC3"}) {
    try {
      compile(regex(text));
      FAIL() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(error.subject(), "regex") << text;
      EXPECT_EQ(std::string(error.what()).find(".cc"), std::string::npos) << error.what();
    }
  }
}

TEST(Ebnf, FollowsItsRules) {
  const Constraint sums = ebnf("root ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" root \")\"");
  EXPECT_TRUE(takes(sums, "1+(2+33)"));
  EXPECT_FALSE(takes(sums, "1+(2"));
  EXPECT_FALSE(takes(sums, "+1"));
}

TEST(Ebnf, RefusesMacrosOptionsAndMistakesByName) {
  for (const char* text :
       {"root ::= Token(5)", "root ::= TagDispatch((\"a\", root))", "root[max_tokens=3] ::= [a-z]*",
        "root ::= \"a\" (= \"b\")", "start ::= \"a\"", "root ::= missing", "root ::= \"a", "root ::= [a",
        "root ::=", "", "root ::= \"a\"{100000}", "root ::= root", "root ::= \"\xC3\""}) {
    EXPECT_THROW(compile(ebnf(text)), InputError) << text;
  }
}

TEST(Choice, IsOneOfTheTexts) {
  const Constraint colours{.kind = Kind::choice, .choices = {"red", "reddish", "été \"x\"\n"}};
  EXPECT_TRUE(takes(colours, "red"));
  EXPECT_TRUE(takes(colours, "reddish"));
  EXPECT_TRUE(takes(colours, "été \"x\"\n"));
  EXPECT_FALSE(takes(colours, "redd"));
  EXPECT_THROW(compile({.kind = Kind::choice}), InputError);
  EXPECT_THROW(compile({.kind = Kind::choice, .choices = {""}}), InputError);
}

TEST(JsonObject, IsExactlyOneObject) {
  const Constraint object{.kind = Kind::json_object};
  EXPECT_TRUE(takes(object, "{}"));
  EXPECT_TRUE(takes(object, "{\"a\": [1, -2.5e3, \"x\\u00e9\\n\", null], \"b\": {\"c\": true}}"));
  EXPECT_FALSE(takes(object, "[1]"));
  EXPECT_FALSE(takes(object, "{\"a\": 01}"));
  EXPECT_FALSE(takes(object, "{\"a\": \"\n\"}"));
  EXPECT_FALSE(takes(object, "{} x"));
}

TEST(Grammar, ControlTokensAreNeverText) {
  const Constraint anything = regex("[^~]*");
  EXPECT_TRUE(takes(anything, "<think>"));
  EXPECT_FALSE(takes_tokens(anything, {*mini().added_token("<think>")}));
}

TEST(Grammar, HoldsAfterTheReasoning) {
  Constraint digits = regex("[0-9]+");
  const auto end_think = *mini().added_token("</think>");
  digits.after_token = end_think;
  auto tokens = mini().encode_plain("any words");
  tokens.push_back(end_think);
  const auto answer = mini().encode_plain("42");
  tokens.insert(tokens.end(), answer.begin(), answer.end());
  EXPECT_TRUE(takes_tokens(digits, tokens));
  tokens.push_back(end_think);
  EXPECT_FALSE(takes_tokens(digits, tokens));
}

std::vector<text::TokenId> calls(const std::string& text) {
  return mini().encode(text);
}

TEST(ToolCalls, KeepTheMarkupOnceABlockOpens) {
  const Constraint tools{.kind = Kind::tool_calls, .tools = {{"f"}, {"get_time"}}};
  const std::string open = "Let me see.\n\n<｜DSML｜ calls>\n";
  const std::string call =
      "<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"x\" string=\"true\">a < b</｜DSML｜ "
      "parameter>\n"
      "<｜DSML｜ parameter name=\"n\" string=\"false\">{\"k\": 2}</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n";
  const std::string empty = "<｜DSML｜ invoke name=\"get_time\">\n\n</｜DSML｜ invoke>\n";
  const std::string close = "</｜DSML｜ calls>";
  EXPECT_TRUE(takes_tokens(tools, calls(open + call + empty + close)));
  EXPECT_TRUE(takes_tokens(tools, calls("No call, 1 < 2.")));
  EXPECT_FALSE(takes_tokens(tools, calls(open + call)));
  EXPECT_FALSE(takes_tokens(tools, calls(open + "<｜DSML｜ invoke name=\"g\">")));
  EXPECT_FALSE(takes_tokens(tools, calls(open + call + close + "more")));
  const std::string raw = "<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"n\" string=\"false\">yes";
  EXPECT_FALSE(takes_tokens(tools, calls(open + raw)));
}

TEST(ToolCalls, RequiredOnesStartInsideTheBlock) {
  const Constraint tools{.kind = Kind::tool_calls, .tools = {{"f"}}, .calls_required = true};
  EXPECT_TRUE(
      takes_tokens(tools, calls("<｜DSML｜ invoke name=\"f\">\n\n</｜DSML｜ invoke>\n</｜DSML｜ calls>")));
  EXPECT_FALSE(takes_tokens(tools, calls("I would rather not.")));
}

TEST(ToolCalls, ArgumentsAreHeldToTheSchemaOfTheTool) {
  const Constraint tools{
      .kind = Kind::tool_calls,
      .tools = {{"f", R"({"type": "object", "additionalProperties": false, "required": ["city", "days"],
                          "$defs": {"unit": {"type": "string", "enum": ["C", "F"]}},
                          "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1},
                                         "unit": {"$ref": "#/$defs/unit"}, "note": {"type": ["string", "null"]}}})"}},
      .calls_required = true};
  const auto call = [](const std::string& lines) {
    return calls("<｜DSML｜ invoke name=\"f\">\n" + lines + "</｜DSML｜ invoke>\n</｜DSML｜ calls>");
  };
  const auto line = [](const std::string& name, const char* kind, const std::string& value) {
    return "<｜DSML｜ parameter name=\"" + name + "\" string=\"" + kind + "\">" + value +
           "</｜DSML｜ parameter>\n";
  };
  const std::string city = line("city", "true", "北京 <b>");
  const std::string days = line("days", "false", "3");
  EXPECT_TRUE(takes_tokens(tools, call(city + days)));
  EXPECT_TRUE(takes_tokens(tools, call(city + days + line("unit", "true", "C"))));
  EXPECT_TRUE(takes_tokens(tools, call(city + days + line("note", "false", "null"))));
  EXPECT_TRUE(takes_tokens(tools, call(city + days + line("note", "true", "null"))));
  EXPECT_FALSE(takes_tokens(tools, call(city)));
  EXPECT_FALSE(takes_tokens(tools, call(city + line("days", "false", "0"))));
  EXPECT_FALSE(takes_tokens(tools, call(city + line("days", "true", "3"))));
  EXPECT_FALSE(takes_tokens(tools, call(city + days + line("unit", "true", "K"))));
  EXPECT_FALSE(takes_tokens(tools, call(city + days + line("other", "true", "x"))));
}

TEST(ToolCalls, RefuseSchemasThatAreNotHonouredNamingToolAndKeyword) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type": "object", "properties": {}})", "additionalProperties"},
      {R"({"type": "array", "additionalProperties": false})", "type"},
      {R"({"type": "object", "additionalProperties": false, "minProperties": 1})", "minProperties"},
      {R"({"type": "object", "additionalProperties": false, "properties": {"x": {"type": "string", "pattern": "a"}}})",
       "pattern"},
      {R"({"type": "object", "additionalProperties": false, "properties": {"x": {"$ref": "#/$defs/y"}}})",
       "$ref"},
      {R"({"type": "object", "additionalProperties": false, "properties": {"x": {"type": "integer", "odd": 1}}})",
       "odd"},
      {R"({"type": "object", "additionalProperties": false, "required": ["z"]})", "required"},
      {"[", "f"}};
  for (const auto& [parameters, keyword] : cases) {
    try {
      compile({.kind = Kind::tool_calls, .tools = {{"f", parameters}}});
      FAIL() << parameters;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(keyword), std::string::npos) << error.what();
      EXPECT_EQ(error.subject().rfind("tools: f", 0), 0U) << error.what();
    }
  }
}

TEST(JsonSchema, IsHonouredOrRefusedByKeywordAndPlace) {
  const Constraint person{
      .kind = Kind::json_schema,
      .text = R"({"type": "object", "additionalProperties": false, "required": ["name", "age"],
      "properties": {"name": {"type": "string", "minLength": 2}, "age": {"type": "integer", "maximum": 130}}})"};
  EXPECT_TRUE(takes(person, R"({"name": "Ada", "age": 36})"));
  EXPECT_FALSE(takes(person, R"({"name": "A", "age": 36})"));
  EXPECT_FALSE(takes(person, R"({"name": "Ada", "age": 136})"));
  EXPECT_FALSE(takes(person, R"({"name": "Ada"})"));
  try {
    compile({.kind = Kind::json_schema, .text = R"({"properties": {"a": {"minimun": 3}}})"});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.subject(), "json_schema");
    EXPECT_NE(std::string(error.what()).find("minimun"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("/properties/a"), std::string::npos) << error.what();
  }
}

// A draft is accepted ahead and taken back: the mask is then what it was.
TEST(Matcher, RollbackRestoresEveryMask) {
  Constraint constraint = {.kind = Kind::json_object};
  constraint.after_token = *mini().added_token("</think>");
  const auto tokens = mini().encode("thinking</think>{\"key\": [1, 2, {\"a\": \"b\"}], \"k\": null}");
  Matcher matcher(compile(constraint));
  std::vector<std::vector<std::uint32_t>> masks;
  const auto mask_of = [](Matcher& at) {
    std::vector<std::uint32_t> mask(at.mask_words());
    if (!at.fill_mask(mask)) mask.assign(mask.size(), ~std::uint32_t{0});
    return mask;
  };
  for (const auto token : tokens) {
    masks.push_back(mask_of(matcher));
    ASSERT_TRUE(matcher.accept(token));
  }
  ASSERT_TRUE(matcher.accept(kEos));
  ASSERT_TRUE(matcher.accept(kEos));  // drafts may go on after the end
  matcher.rollback(2);
  for (std::size_t i = tokens.size(); i-- > 0;) {
    Matcher copy = matcher;
    matcher.rollback(1);
    EXPECT_EQ(mask_of(matcher), masks[i]) << i;
    copy.rollback(1);
    EXPECT_EQ(mask_of(copy), masks[i]) << i;
  }
  EXPECT_THROW(matcher.rollback(1), std::out_of_range);
}

TEST(Compiler, CompilesEveryKindForTheReleasedVocabulary) {
  if (thalweg::testing::kSanitized) GTEST_SKIP() << "the time bound is for builds without sanitizers";
  const text::Tokenizer& released = thalweg::testing::released_tokenizer();
  Compiler large(released, released.vocab_size(), kEos);
  const auto takes_text = [&](const Constraint& constraint, const std::string& text) {
    Matcher matcher(large.compile(constraint).get());
    for (const auto token : released.encode(text)) {
      if (!matcher.accept(token)) return false;
    }
    return matcher.finished();
  };
  EXPECT_TRUE(takes_text({.kind = Kind::json_object}, "{\"city\": \"北京\", \"days\": [1, 2.5]}"));
  EXPECT_TRUE(
      takes_text({.kind = Kind::json_schema, .text = R"({"type": "object", "required": ["city", "days"],
      "properties": {"city": {"type": "string", "minLength": 1, "maxLength": 60}, "days": {"type": "integer"}}})"},
                 "{\"city\": \"北京\", \"days\": 12}"));
  EXPECT_TRUE(takes_text(regex("([A-Z][a-z]{1,12} ?){1,20}"), "Hello World"));
  EXPECT_TRUE(takes_text(
      {.kind = Kind::tool_calls, .tools = {{"f"}, {"g"}}, .calls_required = true},
      "<｜DSML｜ invoke name=\"g\">\n<｜DSML｜ parameter name=\"x\" string=\"false\">\"a\"</｜DSML｜ "
      "parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>"));
}

TEST(Compiler, RefusesHostileInputWithinASecond) {
  std::string deep_groups(5000, '(');
  std::string many = "(x+x+)+y";
  for (int i = 0; i < 6; ++i) many = "(" + many + "){1,9}";
  std::string wide = "(a|b)*a";
  for (int i = 0; i < 60; ++i) wide += "(a|b)";
  const Constraint cases[] = {regex(deep_groups),
                              regex(many),
                              regex(std::string(100'000, 'a')),
                              regex("((((a{1,99}){1,99}){1,99}){1,99})"),
                              regex(wide),
                              regex("(.{0,4000}a){4}"),
                              ebnf("root ::= " + std::string(3000, '(') + "\"a\"" + std::string(3000, ')'))};
  for (const Constraint& constraint : cases) {
    const std::clock_t begin = std::clock();
    try {
      compile(constraint);  // what is no threat may pass, as long as it is quick
    } catch (const InputError& error) {
      EXPECT_EQ(error.subject().rfind(constraint.kind == Kind::regex ? "regex" : "grammar", 0), 0U)
          << error.what();
    }
    EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC * (thalweg::testing::kSanitized ? 10 : 1))
        << constraint.text.substr(0, 40);
  }
}

TEST(Compiler, KeepsWhatItCompiledWithinItsMemory) {
  Compiler small(mini(), mini().vocab_size(), kEos, 1 << 20);
  for (int i = 0; i < 40; ++i) small.compile(regex("[a-z]{" + std::to_string(i) + "}x")).get();
  small.compile(regex("[a-z]{39}x")).get();
  EXPECT_EQ(small.statistics().reused, 1U);
  EXPECT_EQ(small.statistics().compiled, 40U);
  EXPECT_LE(small.statistics().cached_bytes, std::size_t{1} << 20);
}

}  // namespace
}  // namespace thalweg::grammar
