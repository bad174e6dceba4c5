// `thalweg inspect schema`: whether JSON texts are valid for a schema.
#include <fmt/format.h>

#include <iostream>
#include <string>

#include "app/commands.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "schema/schema.hpp"
#include "schema/value.hpp"

namespace thalweg::app {
namespace {

Json refusal(const std::string& keyword, const std::string& path, const std::string& message) {
  return {{"error", {{"keyword", keyword}, {"path", path}, {"message", message}}}};
}

bool is_valid(const schema::Schema& schema, const std::string& text) {
  try {
    return !schema::validate_text(schema, text);
  } catch (const InputError&) {
    return false;  // not JSON
  }
}

Json accepted(const schema::Schema& schema, const schema::Array& texts, const std::string& subject) {
  Json list = Json::array();
  for (const schema::Value& text : texts) {
    const auto* content = text.as<std::string>();
    if (content == nullptr) throw InputError(subject + ".texts", "strings", schema::to_text(text));
    list.push_back(is_valid(schema, *content));
  }
  return {{"accepted", std::move(list)}};
}

Json answer(const std::string& line, const std::string& subject) {
  schema::Value value;
  try {
    value = schema::read_value(line, subject, schema::SchemaLimits::depth + 1);
  } catch (const InputError& error) {
    if (!Json::accept(line)) throw;
    return refusal("", "", error.what());  // JSON beyond the limits: the schema is at fault
  }
  const schema::Value* schema = value.find("schema");
  const schema::Value* texts = value.find("texts");
  if (schema == nullptr || texts == nullptr || texts->as<schema::Array>() == nullptr)
    throw InputError(subject, "members \"schema\" and \"texts\" (a list)", "others");
  try {
    const schema::Schema parsed = schema::parse_schema(schema::to_text(*schema));
    schema::to_ebnf(parsed);  // refuses what cannot be generated, as a request with this schema would be
    return accepted(parsed, *texts->as<schema::Array>(), subject);
  } catch (const schema::SchemaError& error) {
    return refusal(error.keyword(), error.path(), error.what());
  }
}

void run() {
  std::string line;
  for (std::size_t number = 1; std::getline(std::cin, line); ++number)
    std::cout << to_text(answer(line, fmt::format("line {}", number))) << std::endl;
  if (!std::cout) throw WorkError("standard output: write failed");
}

}  // namespace

void add_inspect_schema(CLI::App& inspect) {
  CLI::App* command = inspect.add_subcommand(
      "schema",
      "Check JSON texts against a schema: JSON lines {\"schema\", \"texts\"} in, {\"accepted\"} or "
      "{\"error\"} with keyword and path out");
  command->add_flag("--json")->description("Changes nothing: the output is always JSON lines");
  command->callback(run);
}

}  // namespace thalweg::app
