// Random schemas: whatever their grammars have is valid.
#include <gtest/gtest.h>

#include "schema/random_schema.hpp"
#include "schema/schema.hpp"

namespace thalweg::schema {
namespace {

using testing::RandomSchema;
using testing::Recogniser;

TEST(RandomSchemas, AThousandRandomTextsOfTheirGrammarsAreValid) {
  int texts = 0;
  for (std::uint32_t seed = 0; texts < 1000; ++seed) {
    ASSERT_LT(seed, 5000U);
    const std::string text = RandomSchema(seed).make();
    const Schema schema = parse_schema(text);
    std::optional<Recogniser> grammar;
    try {
      grammar.emplace(to_ebnf(schema));
    } catch (const SchemaError&) {
      continue;
    }
    for (std::uint32_t walk = 0; walk < 3; ++walk) {
      const auto generated = testing::random_text(*grammar, seed * 10 + walk);
      if (!generated) continue;
      ++texts;
      const auto violation = validate_text(schema, *generated);
      EXPECT_FALSE(violation) << text << "\n"
                              << *generated << "\n"
                              << violation->path << ": " << violation->keyword << " " << violation->message;
    }
  }
}

}  // namespace
}  // namespace thalweg::schema
