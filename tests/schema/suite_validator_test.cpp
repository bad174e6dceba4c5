// Every case of the public test suite, against the validator.
#include <gtest/gtest.h>

#include <optional>

#include "schema/schema.hpp"
#include "schema/suite.hpp"

namespace thalweg::schema {
namespace {

using testing::json_schema_suite;
using testing::SuiteGroup;

bool is_required(const SuiteGroup& group) {
  return !group.file.starts_with("optional/");
}

TEST(JsonSchemaSuite, ValidatorAnswersEveryCaseOfASupportedRequiredGroupRight) {
  int groups = 0;
  int supported = 0;
  int cases = 0;
  for (const SuiteGroup& group : json_schema_suite()) {
    if (!is_required(group)) continue;
    ++groups;
    std::optional<Schema> schema;
    try {
      schema = parse_schema(group.schema, {.assert_formats = false});
    } catch (const SchemaError&) {
      continue;
    }
    ++supported;
    for (const auto& test : group.cases) {
      ++cases;
      EXPECT_EQ(!validate_text(*schema, test.text), test.valid)
          << group.name() << ": " << test.description << "\n"
          << group.schema << "\n"
          << test.text;
    }
  }
  std::printf("%d cases in %d of %d groups\n", cases, supported, groups);
  EXPECT_GE(supported * 100, groups * 85);
}

}  // namespace
}  // namespace thalweg::schema
