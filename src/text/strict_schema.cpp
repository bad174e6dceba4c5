#include "text/strict_schema.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

namespace thalweg::text {
namespace {

constexpr std::array<std::string_view, 5> kSimpleTypes{"string", "number", "integer", "boolean", "null"};
constexpr std::array<std::string_view, 5> kFormats{"email", "hostname", "ipv4", "ipv6", "uuid"};
constexpr std::array<std::string_view, 7> kNumberKeywords{
    "const", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
constexpr std::array<std::string_view, 3> kDefinitions{"$def", "$defs", "definitions"};

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, const Json& value) {
  return value.is_string() &&
         std::find(names.begin(), names.end(), value.get_ref<const std::string&>()) != names.end();
}

const Json* find(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  return found == object.end() ? nullptr : &*found;
}

class Normaliser {
 public:
  explicit Normaliser(const Json& root) : root_(root) {
    for (const auto keyword : kDefinitions) {
      const Json* definitions = find(root, keyword);
      if (definitions == nullptr || !definitions->is_object()) continue;
      for (const auto& [name, schema] : definitions->items()) {
        if (!names_.insert(name).second) {
          throw SchemaError(fmt::format("Schema definition '{}' appears in more than one place", name));
        }
      }
    }
  }

  Json run() const {
    Json out = normalise(root_);
    Json definitions = Json::object();
    for (const auto keyword : kDefinitions) {
      const Json* given = find(root_, keyword);
      if (given == nullptr || !given->is_object()) continue;
      for (const auto& [name, schema] : given->items()) definitions[name] = normalise(schema);
    }
    if (!definitions.empty()) out["$def"] = std::move(definitions);
    return out;
  }

 private:
  Json normalise(const Json& schema) const {
    if (!schema.is_object()) throw SchemaError("A strict schema must be a JSON object");
    Json out = Json::object();
    if (const Json* type = find(schema, "type")) {
      write_typed(schema, *type, out);
    } else if (const Json* choices = find(schema, "anyOf")) {
      if (!choices->is_array() || choices->empty()) throw SchemaError("anyOf must be a list of schemas");
      Json& list = out["anyOf"] = Json::array();
      for (const Json& choice : *choices) list.push_back(normalise(choice));
      copy_description(schema, out);
    } else if (const Json* reference = find(schema, "$ref")) {
      out["$ref"] = resolve(*reference);
    } else {
      throw SchemaError("A strict schema needs one of 'type', 'anyOf' and '$ref'");
    }
    return out;
  }

  void write_typed(const Json& schema, const Json& type, Json& out) const {
    out["type"] = type;
    if (type.is_array()) {
      const bool simple =
          std::all_of(type.begin(), type.end(), [](const Json& name) { return among(kSimpleTypes, name); });
      if (type.empty() || !simple) throw SchemaError("A list of types may only name simple types");
      copy_description(schema, out);
    } else if (type == "object") {
      write_object(schema, out);
    } else if (type == "array") {
      const Json* items = find(schema, "items");
      if (items == nullptr) throw SchemaError("An array in a strict schema needs 'items'");
      out["items"] = normalise(*items);
      copy_description(schema, out);
    } else if (among(kSimpleTypes, type)) {
      copy_description(schema, out);
      if (type == "string") write_string(schema, out);
      if (type == "number" || type == "integer") {
        for (const auto keyword : kNumberKeywords) copy(schema, keyword, out);
      }
    } else {
      throw SchemaError("Unknown type in a strict schema: " + to_text(type));
    }
  }

  void write_object(const Json& schema, Json& out) const {
    Json& properties = out["properties"] = Json::object();
    Json names = Json::array();
    if (const Json* given = find(schema, "properties")) {
      if (!given->is_object()) throw SchemaError("properties must be a JSON object");
      for (const auto& [name, property] : given->items()) {
        properties[name] = normalise(property);
        names.push_back(name);
      }
    }
    if (names.empty() && &schema != &root_) throw SchemaError("An object with no properties is not allowed.");
    if (const Json* open = find(schema, "additionalProperties"); open != nullptr && *open != false) {
      throw SchemaError("additionalProperties should not be true");
    }
    if (const Json* required = find(schema, "required")) check_required(*required, names);
    out["additionalProperties"] = false;
    out["required"] = std::move(names);
    copy_description(schema, out);
  }

  static void check_required(const Json& required, const Json& names) {
    std::unordered_set<std::string> missing;
    for (const Json& name : names) missing.insert(name.get<std::string>());
    const std::unordered_set<std::string> known = missing;
    if (!required.is_array()) throw SchemaError("required must be a list of property names");
    for (const Json& entry : required) {
      if (!entry.is_string()) throw SchemaError("required must be a list of property names");
      const auto& name = entry.get_ref<const std::string&>();
      if (known.count(name) == 0)
        throw SchemaError(fmt::format("Required property '{}' not found in object", name));
      if (missing.erase(name) == 0) throw SchemaError(fmt::format("Duplicate required property '{}'", name));
    }
    if (!missing.empty()) throw SchemaError("Required properties must match all properties in the object");
  }

  static void write_string(const Json& schema, Json& out) {
    copy(schema, "pattern", out);
    if (const Json* format = find(schema, "format")) {
      if (!among(kFormats, *format)) {
        throw SchemaError("Unsupported string format in a strict schema: " + to_text(*format));
      }
      out["format"] = *format;
    }
    const Json* values = find(schema, "enum");
    const auto is_text = [](const Json& value) { return value.is_string(); };
    if (values != nullptr && values->is_array() && std::all_of(values->begin(), values->end(), is_text)) {
      out["enum"] = *values;
    }
  }

  static void copy(const Json& schema, std::string_view keyword, Json& out) {
    if (const Json* value = find(schema, keyword)) out[std::string(keyword)] = *value;
  }

  static void copy_description(const Json& schema, Json& out) { copy(schema, "description", out); }

  // "#/$defs/a/..." becomes "#/$def/a/..."; references to other places stay.
  std::string resolve(const Json& reference) const {
    if (!reference.is_string()) throw SchemaError("$ref must be a string");
    const auto& text = reference.get_ref<const std::string&>();
    for (const auto keyword : kDefinitions) {
      const std::string prefix = fmt::format("#/{}/", keyword);
      if (text.rfind(prefix, 0) != 0) continue;
      const std::string rest = text.substr(prefix.size());
      if (names_.count(unescape(rest.substr(0, rest.find('/')))) == 1) return "#/$def/" + rest;
      throw SchemaError(fmt::format("$ref '{}' names no definition of the schema", text));
    }
    if (text == "#" || text.rfind("#/", 0) == 0) return text;
    throw SchemaError(fmt::format("$ref '{}' is outside the schema", text));
  }

  // A name as JSON Pointer spells it.
  static std::string unescape(std::string name) {
    const std::array<std::pair<std::string_view, std::string_view>, 2> escapes{{{"~1", "/"}, {"~0", "~"}}};
    for (const auto& [from, to] : escapes) {
      for (auto at = name.find(from); at != std::string::npos; at = name.find(from, at + 1)) {
        name.replace(at, from.size(), to);
      }
    }
    return name;
  }

  const Json& root_;
  std::unordered_set<std::string> names_;
};

}  // namespace

Json strict_schema(const Json& schema) {
  return Normaliser(schema).run();
}

}  // namespace thalweg::text
