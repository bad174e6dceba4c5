// schema_texts COUNT: random schemas with random texts of their grammars, as JSON lines {"schema", "text"}.
// scripts/check_schema_texts.sh gives them to an independent validator.
#include <cstdio>
#include <cstdlib>

#include "schema/random_schema.hpp"
#include "schema/schema.hpp"

int main(int count, char** arguments) {
  using namespace thalweg;
  const int wanted = count == 2 ? std::atoi(arguments[1]) : 0;
  if (wanted < 1) {
    std::fputs("usage: schema_texts COUNT\n", stderr);
    return 2;
  }
  const schema::ParseOptions formats{.assert_formats = false};  // validators disagree about formats
  std::uint32_t refused = 0;
  std::uint32_t seed = 1'000'000;
  for (int written = 0; written < wanted; ++seed) {
    const std::string schema = testing::RandomSchema(seed).make();
    try {
      const testing::Recogniser grammar(schema::to_ebnf(schema::parse_schema(schema, formats)));
      const auto text = testing::random_text(grammar, seed);
      if (!text) continue;
      std::printf("%s\n", to_text(Json{{"schema", schema}, {"text", *text}}).c_str());
      ++written;
    } catch (const schema::SchemaError&) {
      ++refused;
    }
  }
  std::fprintf(stderr, "%d texts; %u of %u schemas refused\n", wanted, refused, seed - 1'000'000);
}
