// Reads the cases of an `inspect` command's input file, refusing by name what is missing, unknown or out of
// range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace thalweg::app {

/// One JSON object and the name under which messages speak of it ("FILE: cases[3]"). Refers to the JSON it
/// was made from. Every reader throws InputError "<subject>.<member>: expected ..., found ...".
class CaseReader {
 public:
  CaseReader(const Json& object, std::string subject);

  /// Refuses members that are not listed.
  void allow_only(std::initializer_list<std::string_view> members) const;

  std::int64_t integer(std::string_view member, std::int64_t low, std::int64_t high) const;
  bool boolean(std::string_view member) const;
  std::string text(std::string_view member, std::initializer_list<std::string_view> choices) const;
  /// Finite numbers in [low, high], at most `limit` of them; null reads as an empty list.
  std::vector<double> numbers(std::string_view member, double low, double high, std::size_t limit) const;
  std::vector<std::int64_t> integers(std::string_view member, std::int64_t low, std::int64_t high,
                                     std::size_t limit) const;
  /// A list of lists of numbers, each of them `width` long.
  std::vector<std::vector<double>> rows(std::string_view member, std::size_t width, double low,
                                        double high) const;
  /// Length of the first list in a list of lists, at least 1.
  std::size_t first_row_width(std::string_view member) const;
  /// The objects of a list.
  std::vector<CaseReader> objects(std::string_view member) const;

  const std::string& subject() const { return subject_; }
  std::string subject_of(std::string_view member) const;

 private:
  const Json& at(std::string_view member) const;
  const Json& list(std::string_view member) const;

  const Json* object_;
  std::string subject_;
};

}  // namespace thalweg::app
