// The tools of the Responses API: functions, namespaces of functions, the patch tool, tool search.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "wire/fields.hpp"
#include "wire/request.hpp"
#include "wire/tools.hpp"

namespace thalweg::wire {

inline constexpr std::string_view kApplyPatch = "apply_patch";
inline constexpr std::string_view kToolSearch = "tool_search";

/// The name the model sees.
std::string shown_name(const std::string& name_space, const std::string& name);

class ResponsesTools {
 public:
  explicit ResponsesTools(IgnoredFields& ignored) : ignored_(ignored) {}

  /// Reads the list at `path`. Kinds of tools that cannot be offered are left out and listed as ignored.
  void read(const Json& list, const std::string& path);

  /// Reads tools that a search found; they become known later. Gives them back, as the model shall see them.
  std::vector<text::Tool> read_found(const Json& list, const std::string& path);

  /// What the result of a search tells the model: the functions found, each with its namespace if it has one.
  /// `list` has been read.
  static Json describe_found(const Json& list);

  ToolList& list() { return tools_; }
  std::map<std::string, ToolOrigin> take_origins() { return std::move(origins_); }

 private:
  struct Entry {
    text::Tool tool;
    ToolOrigin origin;
    std::string name_path;
  };

  void read_entry(Fields& entry, std::vector<Entry>& out);
  Entry read_function(Fields& entry);
  void read_namespace(Fields& entry, std::vector<Entry>& out);
  Entry read_custom(Fields& entry);
  Entry read_search(Fields& entry);

  IgnoredFields& ignored_;
  ToolList tools_;
  std::map<std::string, ToolOrigin> origins_;
  std::unordered_map<std::string, int> seen_;  ///< how often each name of a namespace tool was
};

}  // namespace thalweg::wire
