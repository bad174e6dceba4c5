// Validation as the standard defines it, keyword by keyword.
#include <algorithm>
#include <set>

#include "schema/document.hpp"
#include "schema/schema.hpp"

namespace thalweg::schema {
namespace {

constexpr std::size_t kValueDepth = 256;
constexpr std::size_t kSteps = 10'000'000;  // of one validation; schemas of a few lines can ask for more

/// What a schema has looked at in an array or object, for the unevaluated keywords.
struct Seen {
  std::set<std::size_t> items;
  std::set<std::string> members;

  void add(const Seen& other) {
    items.insert(other.items.begin(), other.items.end());
    members.insert(other.members.begin(), other.members.end());
  }
};

std::string token(std::string_view name) {
  std::string text;
  for (const char c : name) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

unsigned type_of(const Value& value) {
  if (const auto* number = value.as<Decimal>()) return number->is_integer() ? kInteger | kNumber : kNumber;
  static constexpr unsigned types[] = {kNull, kBoolean, 0, kString, kArray, kObject};
  return types[value.data.index()];
}

class Validator {
 public:
  explicit Validator(const Document& document) : document_(document) {}

  /// The first violation found is in `violation()`.
  bool check(NodeId id, const Value& value, Seen& seen) {
    if (++steps_ > kSteps) throw InputError("value", "validation takes too many steps");
    const Node& node = document_.nodes[id];
    if (node.always) return *node.always || fail("false", "no value is allowed here");
    if ((node.types & type_of(value)) == 0) return fail("type", fmt::format("found {}", describe(value)));
    Seen own;
    if (!check_values(node, value) || !check_number(node, value) || !check_string(node, value) ||
        !check_array(node, value, own) || !check_object(node, value, own) ||
        !check_in_place(node, value, own) || !check_unevaluated(node, value, own))
      return false;
    seen.add(own);
    return true;
  }

  Violation violation() const { return violation_; }

 private:
  bool fail(std::string_view keyword, std::string message) {
    if (quiet_ == 0) violation_ = {path(), std::string(keyword), std::move(message)};
    return false;
  }
  std::string path() const {
    std::string text;
    for (const std::string& part : path_) text += "/" + token(part);
    return text;
  }
  static std::string describe(const Value& value) {
    std::string text = to_text(value);
    return text.size() > 60 ? fmt::format("{} {}...", type_name(value), text.substr(0, 57))
                            : fmt::format("{} {}", type_name(value), text);
  }

  /// Whether a schema holds that need not.
  bool holds(NodeId id, const Value& value, Seen& seen) {
    ++quiet_;
    const bool result = check(id, value, seen);
    --quiet_;
    return result;
  }
  bool check_inside(NodeId id, const Value& value, std::string name) {
    path_.push_back(std::move(name));
    Seen ignored;
    const bool result = check(id, value, ignored);
    path_.pop_back();
    return result;
  }

  bool check_values(const Node& node, const Value& value) {
    if (node.enumeration) {
      const Array& list = *node.enumeration;
      if (std::find(list.begin(), list.end(), value) == list.end())
        return fail("enum", fmt::format("{} is not listed", describe(value)));
    }
    if (node.constant && *node.constant != value)
      return fail("const", fmt::format("expected {}, found {}", to_text(*node.constant), describe(value)));
    return true;
  }

  bool check_number(const Node& node, const Value& value) {
    const auto* number = value.as<Decimal>();
    if (number == nullptr) return true;
    const std::string found = to_text(value);
    if (node.minimum && *number < *node.minimum) return fail("minimum", fmt::format("{} is below", found));
    if (node.maximum && *number > *node.maximum) return fail("maximum", fmt::format("{} is above", found));
    if (node.exclusive_minimum && *number <= *node.exclusive_minimum)
      return fail("exclusiveMinimum", fmt::format("{} is not above", found));
    if (node.exclusive_maximum && *number >= *node.exclusive_maximum)
      return fail("exclusiveMaximum", fmt::format("{} is not below", found));
    if (node.multiple_of && !is_multiple(*number, *node.multiple_of).value_or(false))
      return fail("multipleOf", fmt::format("{} is no multiple", found));
    return true;
  }

  bool check_string(const Node& node, const Value& value) {
    const auto* text = value.as<std::string>();
    if (text == nullptr) return true;
    const std::size_t length = node.min_length > 0 || node.max_length ? characters_of(*text).size() : 0;
    if (length < node.min_length) return fail("minLength", fmt::format("{} characters", length));
    if (node.max_length && length > *node.max_length)
      return fail("maxLength", fmt::format("{} characters", length));
    if (node.pattern && !contains(*node.pattern, *text))
      return fail("pattern", fmt::format("{} does not match", describe(value)));
    if (node.format && !contains(*node.format, *text))
      return fail("format", fmt::format("{} does not match", describe(value)));
    return true;
  }

  bool check_array(const Node& node, const Value& value, Seen& seen) {
    const auto* array = value.as<Array>();
    if (array == nullptr) return true;
    if (array->size() < node.min_items) return fail("minItems", fmt::format("{} items", array->size()));
    if (node.max_items && array->size() > *node.max_items)
      return fail("maxItems", fmt::format("{} items", array->size()));
    for (std::size_t i = 0; i < array->size(); ++i) {
      const bool in_prefix = i < node.prefix_items.size();
      if (!in_prefix && !node.items) break;
      if (!check_inside(in_prefix ? node.prefix_items[i] : *node.items, (*array)[i], std::to_string(i)))
        return false;
      seen.items.insert(i);
    }
    return check_contains(node, *array, seen) && check_unique(node, *array);
  }

  bool check_contains(const Node& node, const Array& array, Seen& seen) {
    if (!node.contains) return true;
    std::size_t found = 0;
    for (std::size_t i = 0; i < array.size(); ++i) {
      Seen ignored;
      if (!holds(*node.contains, array[i], ignored)) continue;
      ++found;
      seen.items.insert(i);
    }
    if (found < node.min_contains)
      return fail(node.min_contains == 1 ? "contains" : "minContains", fmt::format("{} such items", found));
    if (node.max_contains && found > *node.max_contains)
      return fail("maxContains", fmt::format("{} such items", found));
    return true;
  }

  bool check_unique(const Node& node, const Array& array) {
    if (!node.unique_items) return true;
    for (std::size_t i = 0; i < array.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (++steps_ > kSteps) throw InputError("value", "validation takes too many steps");
        if (array[i] == array[j]) return fail("uniqueItems", fmt::format("items {} and {} are equal", j, i));
      }
    }
    return true;
  }

  bool check_object(const Node& node, const Value& value, Seen& seen) {
    const auto* object = value.as<Object>();
    if (object == nullptr) return true;
    for (const std::string& name : node.required) {
      if (value.find(name) == nullptr) return fail("required", fmt::format("\"{}\" is missing", name));
    }
    if (object->size() < node.min_properties)
      return fail("minProperties", fmt::format("{} members", object->size()));
    if (node.max_properties && object->size() > *node.max_properties)
      return fail("maxProperties", fmt::format("{} members", object->size()));
    for (const auto& [name, needed] : node.dependent_required) {
      if (value.find(name) == nullptr) continue;
      for (const std::string& other : needed) {
        if (value.find(other) == nullptr)
          return fail("dependentRequired", fmt::format("\"{}\" is missing beside \"{}\"", other, name));
      }
    }
    return std::all_of(object->begin(), object->end(),
                       [&](const Member& member) { return check_member(node, member, seen); });
  }

  bool check_member(const Node& node, const Member& member, Seen& seen) {
    const auto& [name, value] = member;
    if (node.property_names) {
      Seen ignored;
      if (!check(*node.property_names, Value{name}, ignored)) return false;
    }
    bool matched = false;
    for (const NamedNode& property : node.properties) {
      if (property.name != name) continue;
      matched = true;
      if (!check_inside(property.node, value, name)) return false;
    }
    for (const PatternNode& pattern : node.pattern_properties) {
      if (!contains(pattern.names, name)) continue;
      matched = true;
      if (!check_inside(pattern.node, value, name)) return false;
    }
    if (!matched && node.additional_properties) {
      if (!check_inside(*node.additional_properties, value, name)) {
        if (quiet_ == 0 && violation_.keyword == "false") violation_.keyword = "additionalProperties";
        return false;
      }
      matched = true;
    }
    if (matched) seen.members.insert(name);
    return true;
  }

  bool check_in_place(const Node& node, const Value& value, Seen& seen) {
    if (node.reference && !check(*node.reference, value, seen)) return false;
    for (const NodeId id : node.all_of) {
      if (!check(id, value, seen)) return false;
    }
    if (!node.any_of.empty()) {
      bool any = false;
      for (const NodeId id : node.any_of) any = holds(id, value, seen) || any;
      if (!any) return fail("anyOf", fmt::format("{} fits no branch", describe(value)));
    }
    if (!node.one_of.empty()) {
      std::size_t fitting = 0;
      for (const NodeId id : node.one_of) fitting += holds(id, value, seen) ? 1 : 0;
      if (fitting != 1) return fail("oneOf", fmt::format("{} fits {} branches", describe(value), fitting));
    }
    if (node.negated) {
      Seen ignored;
      if (holds(*node.negated, value, ignored)) return fail("not", fmt::format("found {}", describe(value)));
    }
    if (node.condition) {
      const auto& next = holds(*node.condition, value, seen) ? node.consequence : node.alternative;
      if (next && !check(*next, value, seen)) return false;
    }
    return std::all_of(node.dependent_schemas.begin(), node.dependent_schemas.end(),
                       [&](const NamedNode& next) {
                         return value.find(next.name) == nullptr || check(next.node, value, seen);
                       });
  }

  bool check_unevaluated(const Node& node, const Value& value, Seen& seen) {
    if (const auto* array = value.as<Array>(); array != nullptr && node.unevaluated_items) {
      for (std::size_t i = 0; i < array->size(); ++i) {
        if (seen.items.contains(i)) continue;
        if (!check_inside(*node.unevaluated_items, (*array)[i], std::to_string(i)))
          return rename("unevaluatedItems");
        seen.items.insert(i);
      }
    }
    if (const auto* object = value.as<Object>(); object != nullptr && node.unevaluated_properties) {
      for (const auto& [name, member] : *object) {
        if (seen.members.contains(name)) continue;
        if (!check_inside(*node.unevaluated_properties, member, name)) return rename("unevaluatedProperties");
        seen.members.insert(name);
      }
    }
    return true;
  }
  bool rename(std::string_view keyword) {
    if (quiet_ == 0 && violation_.keyword == "false") violation_.keyword = keyword;
    return false;
  }

  const Document& document_;
  std::vector<std::string> path_;
  int quiet_ = 0;  // > 0: inside of something that may fail
  std::size_t steps_ = 0;
  Violation violation_;
};

std::optional<Violation> validate_value(const Schema& schema, const Value& value) {
  Validator validator(schema.document());
  Seen seen;
  if (validator.check(0, value, seen)) return std::nullopt;
  return validator.violation();
}

}  // namespace

std::optional<Violation> validate(const Schema& schema, const Json& value) {
  return validate_value(schema, to_value(value));
}

std::optional<Violation> validate_text(const Schema& schema, std::string_view text) {
  return validate_value(schema, read_value(text, "value", kValueDepth, Repeated::last));
}

}  // namespace thalweg::schema
