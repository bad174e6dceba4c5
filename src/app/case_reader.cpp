#include "app/case_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace thalweg::app {
namespace {

double number_of(const Json& value, double low, double high, const std::string& subject) {
  // Written this way round so that it also refuses what is no number.
  if (value.is_number() && value.get<double>() >= low && value.get<double>() <= high)
    return value.get<double>();
  throw InputError(subject, fmt::format("a number in {}..{}", low, high), to_text(value));
}

std::int64_t integer_of(const Json& value, std::int64_t low, std::int64_t high, const std::string& subject) {
  if (value.is_number_integer()) {
    const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{1} << 62;
    if (!huge && value.get<std::int64_t>() >= low && value.get<std::int64_t>() <= high) {
      return value.get<std::int64_t>();
    }
  }
  throw InputError(subject, fmt::format("an integer in {}..{}", low, high), to_text(value));
}

}  // namespace

CaseReader::CaseReader(const Json& object, std::string subject)
    : object_(&object), subject_(std::move(subject)) {
  if (!object.is_object()) throw InputError(subject_, "an object", object.type_name());
}

std::string CaseReader::subject_of(std::string_view member) const {
  return fmt::format("{}.{}", subject_, member);
}

void CaseReader::allow_only(std::initializer_list<std::string_view> members) const {
  for (const auto& [name, value] : object_->items()) {
    if (std::find(members.begin(), members.end(), name) == members.end()) {
      throw InputError(subject_of(name), "unknown member");
    }
  }
}

const Json& CaseReader::at(std::string_view member) const {
  const auto found = object_->find(member);
  if (found == object_->end()) throw InputError(subject_of(member), "a value", "no such member");
  return *found;
}

const Json& CaseReader::list(std::string_view member) const {
  const Json& value = at(member);
  if (!value.is_array()) throw InputError(subject_of(member), "a list", value.type_name());
  return value;
}

std::int64_t CaseReader::integer(std::string_view member, std::int64_t low, std::int64_t high) const {
  return integer_of(at(member), low, high, subject_of(member));
}

bool CaseReader::boolean(std::string_view member) const {
  const Json& value = at(member);
  if (!value.is_boolean()) throw InputError(subject_of(member), "true or false", to_text(value));
  return value.get<bool>();
}

std::string CaseReader::text(std::string_view member, std::initializer_list<std::string_view> choices) const {
  const Json& value = at(member);
  if (value.is_string() &&
      std::find(choices.begin(), choices.end(), value.get<std::string>()) != choices.end()) {
    return value.get<std::string>();
  }
  throw InputError(subject_of(member), fmt::format("{}", fmt::join(choices, " or ")), to_text(value));
}

std::vector<double> CaseReader::numbers(std::string_view member, double low, double high,
                                        std::size_t limit) const {
  if (at(member).is_null()) return {};
  const Json& values = list(member);
  if (values.size() > limit) {
    throw InputError(subject_of(member), fmt::format("at most {} numbers", limit),
                     fmt::format("{}", values.size()));
  }
  std::vector<double> numbers;
  for (std::size_t i = 0; i < values.size(); ++i) {
    numbers.push_back(number_of(values[i], low, high, fmt::format("{}[{}]", subject_of(member), i)));
  }
  return numbers;
}

std::vector<std::int64_t> CaseReader::integers(std::string_view member, std::int64_t low, std::int64_t high,
                                               std::size_t limit) const {
  const Json& values = list(member);
  if (values.size() > limit) {
    throw InputError(subject_of(member), fmt::format("at most {} integers", limit),
                     fmt::format("{}", values.size()));
  }
  std::vector<std::int64_t> integers;
  for (std::size_t i = 0; i < values.size(); ++i) {
    integers.push_back(integer_of(values[i], low, high, fmt::format("{}[{}]", subject_of(member), i)));
  }
  return integers;
}

std::vector<std::vector<double>> CaseReader::rows(std::string_view member, std::size_t width, double low,
                                                  double high) const {
  const Json& values = list(member);
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string subject = fmt::format("{}[{}]", subject_of(member), i);
    if (!values[i].is_array() || values[i].size() != width) {
      throw InputError(subject, fmt::format("a list of {} numbers", width), to_text(values[i]));
    }
    std::vector<double>& row = rows.emplace_back();
    for (const Json& value : values[i]) row.push_back(number_of(value, low, high, subject));
  }
  return rows;
}

std::size_t CaseReader::first_row_width(std::string_view member) const {
  const Json& values = list(member);
  if (!values.empty() && values[0].is_array() && !values[0].empty()) return values[0].size();
  throw InputError(subject_of(member), "lists of at least one number",
                   values.empty() ? "none" : to_text(values[0]));
}

std::vector<CaseReader> CaseReader::objects(std::string_view member) const {
  const Json& values = list(member);
  std::vector<CaseReader> objects;
  for (std::size_t i = 0; i < values.size(); ++i) {
    objects.emplace_back(values[i], fmt::format("{}[{}]", subject_of(member), i));
  }
  return objects;
}

}  // namespace thalweg::app
