// Every request of tests/data/api/render.json: prompt, ids and derived settings.
#include "wire/support.hpp"

namespace thalweg::testing {
namespace {

// Schemas are JSON inside a string: their spelling is free.
void parse_schema(Json& described) {
  Json& constraint = described["inference"]["output_constraint"];
  if (constraint.is_null() || constraint["kind"] == "regex" || constraint["schema"] == "") return;
  constraint["schema"] = parse_json(constraint["schema"].get<std::string>(), "schema");
}

void expect_rendered(const char* list) {
  const Json file = api_cases("render.json");
  for (const Json& golden : file.at(list)) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    Json found = describe(golden["api"], golden["request"]);
    Json expected = golden["expect"];
    parse_schema(found);
    parse_schema(expected);
    for (const auto& [key, value] : expected.items()) {
      // Unordered: members of settings may come in any order.
      EXPECT_EQ(nlohmann::json::parse(found[key].dump()), nlohmann::json::parse(value.dump())) << key;
    }
    EXPECT_EQ(found.size(), expected.size());
  }
}

TEST(GoldenRender, AgreesWithTheReferenceOnEveryCase) {
  expect_rendered("cases");
}
TEST(GoldenRender, HoldsItsExtensions) {
  expect_rendered("extensions");
}

}  // namespace
}  // namespace thalweg::testing
