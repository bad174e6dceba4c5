// check_schema_form: is it a JSON Schema at all?
#include <algorithm>
#include <array>
#include <cmath>

#include "text/strict_schema.hpp"

namespace thalweg::text {
namespace {

enum class Form {
  any_list,
  boolean,
  count,
  list_of_schemas,
  map_of_schemas,
  number,
  names,
  schema,
  string,
  type
};

struct Keyword {
  std::string_view name;
  Form form;
};

constexpr std::array<Keyword, 36> kKeywords{{
    {"$ref", Form::string},
    {"$schema", Form::string},
    {"$defs", Form::map_of_schemas},
    {"additionalProperties", Form::schema},
    {"allOf", Form::list_of_schemas},
    {"anyOf", Form::list_of_schemas},
    {"contains", Form::schema},
    {"definitions", Form::map_of_schemas},
    {"description", Form::string},
    {"else", Form::schema},
    {"enum", Form::any_list},
    {"exclusiveMaximum", Form::number},
    {"exclusiveMinimum", Form::number},
    {"format", Form::string},
    {"if", Form::schema},
    {"maxItems", Form::count},
    {"maxLength", Form::count},
    {"maxProperties", Form::count},
    {"maximum", Form::number},
    {"minItems", Form::count},
    {"minLength", Form::count},
    {"minProperties", Form::count},
    {"minimum", Form::number},
    {"multipleOf", Form::number},
    {"not", Form::schema},
    {"oneOf", Form::list_of_schemas},
    {"pattern", Form::string},
    {"patternProperties", Form::map_of_schemas},
    {"prefixItems", Form::list_of_schemas},
    {"properties", Form::map_of_schemas},
    {"propertyNames", Form::schema},
    {"required", Form::names},
    {"then", Form::schema},
    {"title", Form::string},
    {"type", Form::type},
    {"uniqueItems", Form::boolean},
}};

bool is_type_name(const Json& value) {
  static constexpr std::array<std::string_view, 7> kTypes{"array",  "boolean", "integer", "null",
                                                          "number", "object",  "string"};
  return value.is_string() &&
         std::find(kTypes.begin(), kTypes.end(), value.get_ref<const std::string&>()) != kTypes.end();
}

bool every(const Json& list, bool (*test)(const Json&)) {
  return list.is_array() && std::all_of(list.begin(), list.end(), test);
}

bool is_text(const Json& value) {
  return value.is_string();
}

// The values whose form needs no look at schemas inside.
bool has_form(const Json& value, Form form) {
  switch (form) {
    case Form::any_list:
      return value.is_array();
    case Form::boolean:
      return value.is_boolean();
    case Form::count:
      return value.is_number() && value.get<double>() >= 0 &&
             std::floor(value.get<double>()) == value.get<double>();
    case Form::list_of_schemas:
      return value.is_array() && !value.empty();
    case Form::map_of_schemas:
      return value.is_object();
    case Form::number:
      return value.is_number();
    case Form::names:
      return every(value, is_text);
    case Form::schema:
      return value.is_object() || value.is_boolean();
    case Form::string:
      return value.is_string();
    case Form::type:
      return is_type_name(value) || (every(value, is_type_name) && !value.empty());
  }
  return false;
}

void check(const Json& schema, const std::string& place) {
  if (!has_form(schema, Form::schema)) {
    throw SchemaError(fmt::format("a schema must be an object or a boolean at '{}'", place));
  }
  if (!schema.is_object()) return;
  for (const auto& member : schema.items()) {
    const std::string& name = member.key();
    const Json& value = member.value();
    const auto* keyword = std::find_if(kKeywords.begin(), kKeywords.end(),
                                       [&](const Keyword& known) { return known.name == name; });
    const std::string inside = fmt::format("{}/{}", place, name);
    // Older drafts let `items` be a list of schemas.
    if (name == "items" && !value.is_array()) check(value, inside);
    if (keyword == kKeywords.end()) continue;
    if (!has_form(value, keyword->form))
      throw SchemaError(fmt::format("{} is not valid for '{}'", to_text(value), inside));
    if (keyword->form == Form::schema) check(value, inside);
    if (keyword->form != Form::list_of_schemas && keyword->form != Form::map_of_schemas) continue;
    for (const auto& [key, inner] : value.items()) check(inner, fmt::format("{}/{}", inside, key));
  }
}

}  // namespace

void check_schema_form(const Json& schema) {
  check(schema, "");
}

}  // namespace thalweg::text
