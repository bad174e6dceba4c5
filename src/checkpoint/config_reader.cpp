#include "checkpoint/config_reader.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace thalweg::checkpoint {
namespace {

// Short enough for one line of a message.
std::string found_text(const Json& value) {
  std::string text = to_text(value);
  constexpr std::size_t kLongest = 80;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

std::string range_text(std::int64_t low, std::int64_t high) {
  return high == std::numeric_limits<std::int64_t>::max()
             ? fmt::format("an integer of at least {}", low)
             : fmt::format("an integer from {} to {}", low, high);
}

bool in_range(const Json& value, std::int64_t low, std::int64_t high) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    return false;
  }
  const auto n = value.get<std::int64_t>();
  return n >= low && n <= high;
}

}  // namespace

ConfigReader::ConfigReader(const Json& value, std::string subject, std::string path)
    : value_(value), subject_(std::move(subject)), path_(std::move(path)) {
  if (!value_.is_object()) {
    throw InputError(path_.empty() ? subject_ : subject_ + ": " + path_, "an object", found_text(value_));
  }
}

std::string ConfigReader::where(std::string_view name) const {
  return path_.empty() ? fmt::format("{}: {}", subject_, name)
                       : fmt::format("{}: {}.{}", subject_, path_, name);
}

void ConfigReader::fail(std::string_view name, std::string_view expected, std::string_view found) const {
  throw InputError(where(name), expected, found);
}

void ConfigReader::fail(std::string_view name, const std::string& problem) const {
  throw InputError(where(name), problem);
}

bool ConfigReader::has(std::string_view name) const {
  const auto found = value_.find(name);
  return found != value_.end() && !found->is_null();
}

const Json& ConfigReader::get(std::string_view name, std::string_view expected) {
  seen_.emplace(name);
  const auto found = value_.find(name);
  if (found == value_.end()) fail(name, expected, "no such member");
  return *found;
}

std::int64_t ConfigReader::integer(std::string_view name, std::int64_t low, std::int64_t high) {
  const std::string expected = range_text(low, high);
  const Json& value = get(name, expected);
  if (!in_range(value, low, high)) fail(name, expected, found_text(value));
  return value.get<std::int64_t>();
}

int ConfigReader::small(std::string_view name, int low, int high) {
  return static_cast<int>(integer(name, low, high));
}

double ConfigReader::positive(std::string_view name) {
  constexpr std::string_view kExpected = "a finite number greater than 0";
  const Json& value = get(name, kExpected);
  if (!value.is_number() || !std::isfinite(value.get<double>()) || !(value.get<double>() > 0)) {
    fail(name, kExpected, found_text(value));
  }
  return value.get<double>();
}

std::vector<std::int64_t> ConfigReader::integers(std::string_view name, std::int64_t low, std::int64_t high) {
  const Json& value = get(name, "an array of integers");
  if (!value.is_array()) fail(name, "an array of integers", found_text(value));
  std::vector<std::int64_t> numbers;
  for (const Json& item : value) {
    if (!in_range(item, low, high)) {
      fail(fmt::format("{}[{}]", name, numbers.size()), range_text(low, high), found_text(item));
    }
    numbers.push_back(item.get<std::int64_t>());
  }
  return numbers;
}

std::vector<int> ConfigReader::small_integers(std::string_view name, int low, int high) {
  const auto numbers = integers(name, low, high);
  return {numbers.begin(), numbers.end()};
}

ConfigReader ConfigReader::section(std::string_view name) {
  const Json& value = get(name, "an object");
  return {value, subject_, path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name)};
}

void ConfigReader::require(std::string_view name, const Json& expected) {
  const Json& value = get(name, found_text(expected));
  if (value != expected) fail(name, found_text(expected), found_text(value));
}

void ConfigReader::allow(std::string_view name, const Json& expected) {
  if (has(name)) require(name, expected);
  seen_.emplace(name);
}

void ConfigReader::ignore(std::string_view name) {
  seen_.emplace(name);
}

void ConfigReader::finish() const {
  for (const auto& [name, unused] : value_.items()) {
    if (!seen_.contains(name))
      fail(name, "unknown member: it may change the computation, which is not supported");
  }
}

}  // namespace thalweg::checkpoint
