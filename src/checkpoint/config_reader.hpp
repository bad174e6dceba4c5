// Typed access to one section of config.json that keeps account of what was read.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace thalweg::checkpoint {

/// One object of the configuration. Every getter throws InputError "<subject>: <path>: expected ..., found
/// ..." if the member is missing or of another type or range. `finish` refuses members that no getter asked
/// for.
class ConfigReader {
 public:
  /// `value` must outlive the reader. `path` is "" for the root, else e.g. "text_config".
  ConfigReader(const Json& value, std::string subject, std::string path);

  bool has(std::string_view name) const;  ///< present and not null
  std::int64_t integer(std::string_view name, std::int64_t low, std::int64_t high);
  int small(std::string_view name, int low, int high);
  double positive(std::string_view name);  ///< finite and greater than zero
  std::vector<std::int64_t> integers(std::string_view name, std::int64_t low, std::int64_t high);
  std::vector<int> small_integers(std::string_view name, int low, int high);
  ConfigReader section(std::string_view name);

  /// The member must be there and equal `expected` (numbers by value, so 0 equals 0.0).
  void require(std::string_view name, const Json& expected);
  /// The member may be missing or null; if it is there it must equal `expected`.
  void allow(std::string_view name, const Json& expected);
  /// The member has no influence on the computation.
  void ignore(std::string_view name);
  /// Refuses the first member that was not asked for.
  void finish() const;

  [[noreturn]] void fail(std::string_view name, std::string_view expected, std::string_view found) const;
  [[noreturn]] void fail(std::string_view name, const std::string& problem) const;

 private:
  const Json& get(std::string_view name, std::string_view expected);
  std::string where(std::string_view name) const;

  const Json& value_;
  std::string subject_;
  std::string path_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace thalweg::checkpoint
