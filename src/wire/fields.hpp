// Reading the members of a JSON object of a request: types are checked, and what nobody reads is written
// down.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "wire/request_error.hpp"

namespace thalweg::wire {

/// The body of a request. Throws MalformedRequest for what is not JSON, nested deeper than 128 levels, or
/// repeats a member; also if it is not an object.
Json parse_body(std::string_view body);

/// Names of fields without effect, each once.
class IgnoredFields {
 public:
  /// `path` may hold list indices; they are left out. Characters that a header list cannot hold become `?`.
  void add(std::string_view path);
  std::vector<std::string> take();

 private:
  std::set<std::string> names_;
};

/// Throws MalformedRequest: `path` should be `expected`, but is `found`.
[[noreturn]] void malformed(const std::string& path, std::string_view expected, const Json& found);
[[noreturn]] void rejected(const std::string& message, const std::string& param);

/// One object. A null member counts as absent throughout. `object` and `ignored` must outlive it.
class Fields {
 public:
  /// Throws MalformedRequest if `object` is not one. `path` is empty for the body.
  Fields(const Json& object, std::string path, IgnoredFields& ignored);

  /// Path of a member, for messages.
  std::string path(std::string_view name) const;
  const std::string& path() const { return path_; }
  IgnoredFields& ignored() const { return *ignored_; }

  /// The member, or null if absent. require() and the typed readers throw MalformedRequest naming the path.
  const Json* get(std::string_view name);
  const Json& require(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  std::optional<double> number(std::string_view name);
  std::optional<std::string> string(std::string_view name);
  std::string require_string(std::string_view name);
  const Json* list(std::string_view name);
  const Json* object(std::string_view name);

  /// Marks a member that is known to have no effect.
  void ignore(std::string_view name);
  /// Says which members were not read by anyone. Call when done.
  void finish();

 private:
  const Json* object_;
  std::string path_;
  IgnoredFields* ignored_;
  std::vector<std::string_view> read_;
};

/// `path[index]`.
std::string element_path(const std::string& path, std::size_t index);

/// A whole number, also one that is written as 3.0 or 3e2; none for any other value and for what no int64
/// holds.
std::optional<std::int64_t> whole_number(const Json& value);

/// The strings of a list. Throws MalformedRequest.
const std::string& as_string(const Json& value, const std::string& path);

}  // namespace thalweg::wire
