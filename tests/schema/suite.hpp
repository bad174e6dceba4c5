// The public JSON Schema test suite, draft 2020-12, as packed by scripts/pack_json_schema_suite.py.
#pragma once

#include <string>
#include <vector>

#include "schema/value.hpp"
#include "support/text_data.hpp"

namespace thalweg::testing {

struct SuiteCase {
  std::string description;
  std::string text;
  bool valid;
};

struct SuiteGroup {
  std::string file;  ///< "optional/..." for what the suite does not require
  std::string description;
  std::string schema;
  std::vector<SuiteCase> cases;

  std::string name() const { return file + ": " + description; }
};

inline const std::vector<SuiteGroup>& json_schema_suite() {
  using schema::Array;
  static const std::vector<SuiteGroup> suite = [] {
    const auto path =
        std::filesystem::path(THALWEG_SOURCE_DIR) / "tests/data/json_schema/draft2020-12.json.zst";
    const schema::Value files = schema::read_value(decompress_zstd(path), path.string(), 128);
    const auto text = [](const schema::Value& value, const char* name) {
      return *value.find(name)->as<std::string>();
    };
    std::vector<SuiteGroup> groups;
    for (const schema::Value& file : *files.as<Array>()) {
      for (const schema::Value& group : *file.find("groups")->as<Array>()) {
        groups.push_back(
            {text(file, "file"), text(group, "description"), to_text(*group.find("schema")), {}});
        for (const schema::Value& test : *group.find("tests")->as<Array>()) {
          groups.back().cases.push_back(
              {text(test, "description"), to_text(*test.find("data")), *test.find("valid")->as<bool>()});
        }
      }
    }
    return groups;
  }();
  return suite;
}

}  // namespace thalweg::testing
