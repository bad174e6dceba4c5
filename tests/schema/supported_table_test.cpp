// The table of supported keywords in docs/structured_outputs.md is what the public test suite finds.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "schema/schema.hpp"
#include "schema/suite.hpp"

namespace thalweg::schema {
namespace {

struct Row {
  int groups = 0;
  int validated = 0;
  int generated = 0;
  std::set<std::string> reasons;

  void add(const std::string& schema) {
    ++groups;
    bool read = false;
    try {
      const Schema parsed = parse_schema(schema, {.assert_formats = false});
      read = true;
      ++validated;
      to_ebnf(parsed);
      ++generated;
    } catch (const SchemaError& error) {
      if (!error.keyword().empty()) {
        reasons.insert(fmt::format("`{}`", error.keyword()));
      } else {
        reasons.insert(read ? "no value is valid" : error.what());
      }
    }
  }
};

std::string table() {
  std::map<std::string, Row> rows;
  Row all;
  for (const auto& group : thalweg::testing::json_schema_suite()) {
    if (group.file.starts_with("optional/")) continue;
    rows[group.file].add(group.schema);
    all.add(group.schema);
  }
  std::string text =
      "| keyword | groups | validated | generated | refused for |\n| --- | --- | --- | --- | --- |\n";
  for (const auto& [file, row] : rows) {
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", file, row.groups, row.validated, row.generated,
                        fmt::join(row.reasons, ", "));
  }
  return text + fmt::format("| all | {} | {} | {} | |\n", all.groups, all.validated, all.generated);
}

TEST(SupportedKeywords, TableOfTheDocumentIsUpToDate) {
  const std::string page =
      read_text_file(std::filesystem::path(THALWEG_SOURCE_DIR) / "docs/structured_outputs.md");
  const std::string begin = "<!-- table of keywords -->\n";
  const std::size_t from = page.find(begin);
  const std::size_t to = page.find("<!-- end of table -->");
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  EXPECT_EQ(page.substr(from + begin.size(), to - from - begin.size()), table()) << "put this there:\n"
                                                                                 << table();
}

}  // namespace
}  // namespace thalweg::schema
