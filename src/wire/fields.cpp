#include "wire/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace thalweg::wire {
namespace {

constexpr std::size_t kShownLength = 40;
constexpr std::size_t kLongestName = 128;

std::string describe(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  std::string text = to_text(value);
  if (text.size() > kShownLength) return value.is_string() ? "a string" : "a number";
  return text;
}

}  // namespace

Json parse_body(std::string_view body) {
  try {
    Json value = parse_json(body, "request body", {.unique_keys = true});
    if (!value.is_object()) malformed("", "a JSON object", value);
    return value;
  } catch (const InputError& error) {
    // What follows repeats the text at fault, however long it is.
    const std::string_view message = error.what();
    throw MalformedRequest(std::string(message.substr(0, message.find("; last read: "))), "");
  }
}

void IgnoredFields::add(std::string_view path) {
  std::string name;
  for (std::size_t i = 0; i < path.size() && name.size() < kLongestName; ++i) {
    // The names end up in a header: nothing there may break it.
    name += path[i] > ' ' && path[i] <= '~' && path[i] != ',' ? path[i] : '?';
    if (path[i] != '[') continue;
    while (i + 1 < path.size() && path[i + 1] >= '0' && path[i + 1] <= '9') ++i;
  }
  names_.insert(std::move(name));
}

std::vector<std::string> IgnoredFields::take() {
  std::vector<std::string> names(names_.begin(), names_.end());
  names_.clear();
  return names;
}

void malformed(const std::string& path, std::string_view expected, const Json& found) {
  throw MalformedRequest(fmt::format("{}: expected {}, found {}", path.empty() ? "request body" : path,
                                     expected, describe(found)),
                         path);
}

void rejected(const std::string& message, const std::string& param) {
  throw RejectedRequest(message, param);
}

Fields::Fields(const Json& object, std::string path, IgnoredFields& ignored)
    : object_(&object), path_(std::move(path)), ignored_(&ignored) {
  if (!object.is_object()) malformed(path_, "an object", object);
}

std::string Fields::path(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

const Json* Fields::get(std::string_view name) {
  read_.push_back(name);
  for (const auto& [key, value] : object_->items()) {
    if (key == name) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

const Json& Fields::require(std::string_view name) {
  const Json* value = get(name);
  if (value == nullptr) throw MalformedRequest(path(name) + ": missing or null", path(name));
  return *value;
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) malformed(path(name), "true or false", *value);
  return value->get<bool>();
}

std::optional<double> Fields::number(std::string_view name) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) malformed(path(name), "a number", *value);
  return value->get<double>();
}

std::optional<std::string> Fields::string(std::string_view name) {
  const Json* value = get(name);
  if (value == nullptr) return std::nullopt;
  return as_string(*value, path(name));
}

std::string Fields::require_string(std::string_view name) {
  return as_string(require(name), path(name));
}

const Json* Fields::list(std::string_view name) {
  const Json* value = get(name);
  if (value != nullptr && !value->is_array()) malformed(path(name), "a list", *value);
  return value;
}

const Json* Fields::object(std::string_view name) {
  const Json* value = get(name);
  if (value != nullptr && !value->is_object()) malformed(path(name), "an object", *value);
  return value;
}

void Fields::ignore(std::string_view name) {
  if (get(name) != nullptr) ignored_->add(path(name));
}

void Fields::finish() {
  for (const auto& [key, value] : object_->items()) {
    if (value.is_null() || std::find(read_.begin(), read_.end(), key) != read_.end()) continue;
    ignored_->add(path(key));
  }
}

std::string element_path(const std::string& path, std::size_t index) {
  return fmt::format("{}[{}]", path, index);
}

std::optional<std::int64_t> whole_number(const Json& value) {
  constexpr double kLimit = 9007199254740992;  // 2^53: beyond, a double stands for more than one number
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (std::abs(number) > kLimit || number != std::trunc(number)) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t(INT64_MAX))
    return std::nullopt;
  return value.get<std::int64_t>();
}

const std::string& as_string(const Json& value, const std::string& path) {
  if (!value.is_string()) malformed(path, "a string", value);
  return value.get_ref<const std::string&>();
}

}  // namespace thalweg::wire
