// The formats of the public test suite, which it does not require, as conditions.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "schema/schema.hpp"
#include "schema/suite.hpp"

namespace thalweg::schema {
namespace {

TEST(JsonSchemaSuite, FormatsAgreeButForTheListed) {
  std::set<std::string> accepted;
  std::set<std::string> rejected;
  int cases = 0;
  for (const auto& group : thalweg::testing::json_schema_suite()) {
    if (!group.file.starts_with("optional/format/")) continue;
    std::optional<Schema> schema;
    try {
      schema = parse_schema(group.schema);
    } catch (const SchemaError&) {
      continue;
    }
    for (const auto& test : group.cases) {
      ++cases;
      const bool valid = !validate_text(*schema, test.text);
      if (valid != test.valid)
        (valid ? accepted : rejected).insert(group.file.substr(16) + ": " + test.description);
    }
  }
  EXPECT_EQ(accepted, std::set<std::string>{});
  const std::set<std::string> not_known{
      "date-time: a valid date-time with a leap second, UTC",
      "date-time: a valid date-time with a leap second, with minus offset",
      "email: a quoted string with a @ in the local part is valid",
      "email: a quoted string with a double dot in the local part is valid",
      "email: a quoted string with a space in the local part is valid",
      "email: an IPv4-address-literal after the @ is valid",
      "email: an IPv6-address-literal after the @ is valid",
      "time: a valid time string with leap second, Zulu",
      "time: valid leap second, large negative time-offset",
      "time: valid leap second, large positive time-offset",
      "time: valid leap second, negative time-offset",
      "time: valid leap second, positive time-offset",
      "time: valid leap second, zero time-offset",
      "uri: a valid URL ",
  };
  EXPECT_EQ(rejected, not_known);
  EXPECT_GT(cases, 200);
}

}  // namespace
}  // namespace thalweg::schema
