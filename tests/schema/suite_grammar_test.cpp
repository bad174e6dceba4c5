// Every case of the public test suite, against the grammar.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "schema/recogniser.hpp"
#include "schema/schema.hpp"
#include "schema/suite.hpp"

namespace thalweg::schema {
namespace {

using testing::json_schema_suite;
using testing::Recogniser;
using testing::SuiteGroup;

struct Answers {
  int groups = 0;
  int supported = 0;
  int cases = 0;
  std::set<std::string> invalid_but_generated;
  std::set<std::string> valid_but_not_generated;
};

const Answers& answers() {
  static const Answers all = [] {
    Answers result;
    for (const SuiteGroup& group : json_schema_suite()) {
      if (group.file.starts_with("optional/")) continue;
      ++result.groups;
      std::string ebnf;
      try {
        ebnf = to_ebnf(parse_schema(group.schema, {.assert_formats = false}));
      } catch (const SchemaError&) {
        continue;
      }
      ++result.supported;
      const Recogniser recogniser(ebnf);
      for (const auto& test : group.cases) {
        ++result.cases;
        if (recogniser.accepts(test.text) == test.valid) continue;
        auto& list = test.valid ? result.valid_but_not_generated : result.invalid_but_generated;
        list.insert(group.name() + ": " + test.description);
      }
    }
    return result;
  }();
  return all;
}

TEST(JsonSchemaSuite, GrammarHasNoInvalidText) {
  EXPECT_EQ(answers().invalid_but_generated, std::set<std::string>{});
}

TEST(JsonSchemaSuite, GrammarsExistForMostRequiredGroups) {
  std::printf("grammars for %d of %d groups, %d cases\n", answers().supported, answers().groups,
              answers().cases);
  EXPECT_GE(answers().supported * 100, answers().groups * 85);
}

TEST(JsonSchemaSuite, GrammarLacksOnlyOtherOrdersOfMembers) {
  const std::set<std::string> other_orders{
      "allOf: allOf: allOf",
      "allOf: allOf with base schema: valid",
      "const: const with object: same object with different property order is valid",
      "dependentRequired: dependencies with escaped characters: CRLF",
  };
  EXPECT_EQ(answers().valid_but_not_generated, other_orders);
}

}  // namespace
}  // namespace thalweg::schema
