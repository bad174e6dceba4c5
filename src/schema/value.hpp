// JSON values whose numbers are exact.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "schema/decimal.hpp"

namespace thalweg::schema {

struct Value;
using Array = std::vector<Value>;
using Member = std::pair<std::string, Value>;
/// In the order of the text, names unique.
using Object = std::vector<Member>;

/// A whole JSON value. Numbers are decimals; two values are equal as JSON Schema has it: 1 and 1.0 are one
/// number, the order of members does not matter.
struct Value {
  std::variant<std::nullptr_t, bool, Decimal, std::string, Array, Object> data = nullptr;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
  /// The member of an object with this name, or null.
  const Value* find(std::string_view name) const;
  bool operator==(const Value& other) const;
};

/// "null", "boolean", "number", "string", "array" or "object".
std::string_view type_name(const Value& value);
/// Compact JSON text; numbers in plain notation where they are of bearable length.
std::string to_text(const Value& value);

/// A member that an object has twice is an error, or its last value counts.
enum class Repeated { refused, last };

/// Throws InputError(subject, ...) for text that is not JSON or is nested deeper than `depth`.
Value read_value(std::string_view text, const std::string& subject, std::size_t depth,
                 Repeated repeated = Repeated::refused);
Value to_value(const Json& json);

}  // namespace thalweg::schema
