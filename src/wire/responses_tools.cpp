#include "wire/responses_tools.hpp"

#include <fmt/format.h>

#include <unordered_set>

#include "wire/apply_patch.hpp"

namespace thalweg::wire {
namespace {

void copy_member(const Json& from, const std::string& name, Json& to) {
  const auto found = from.find(name);
  to[name] = found == from.end() ? Json() : *found;
}

Json describe_function(const Json& tool) {
  Json out = Json::object();
  for (const auto* member : {"type", "name", "description", "parameters", "strict"})
    copy_member(tool, member, out);
  return out;
}

}  // namespace

std::string shown_name(const std::string& name_space, const std::string& name) {
  return name_space.empty() ? name : fmt::format("{}::{}", name_space, name);
}

void ResponsesTools::read(const Json& list, const std::string& path) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Fields entry(list[i], element_path(path, i), ignored_);
    read_entry(entry, entries);
    entry.finish();
  }
  for (Entry& entry : entries) {
    origins_.emplace(entry.tool.name, std::move(entry.origin));
    tools_.add(std::move(entry.tool), entry.name_path);
  }
}

std::vector<text::Tool> ResponsesTools::read_found(const Json& list, const std::string& path) {
  // What a search finds may belong to namespaces that are declared already.
  seen_.clear();
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Fields entry(list[i], element_path(path, i), ignored_);
    read_entry(entry, entries);
    entry.finish();
  }
  std::vector<text::Tool> found;
  for (Entry& entry : entries) {
    entry.tool.deferred = true;
    origins_.emplace(entry.tool.name, std::move(entry.origin));
    tools_.add_later(entry.tool);
    found.push_back(std::move(entry.tool));
  }
  return found;
}

Json ResponsesTools::describe_found(const Json& list) {
  Json out = Json::array();
  for (const Json& tool : list) {
    const auto inner = tool.find("tools");
    if (tool["type"] != "namespace" || inner == tool.end()) {
      out.push_back(describe_function(tool));
      continue;
    }
    Json name_space = Json::object();
    for (const auto* member : {"name", "description"}) copy_member(tool, member, name_space);
    for (const Json& function : *inner) {
      out.push_back(describe_function(function));
      out.back()["namespace"] = name_space;
    }
  }
  return out;
}

void ResponsesTools::read_entry(Fields& entry, std::vector<Entry>& out) {
  const std::string type = entry.require_string("type");
  if (type == "function") {
    out.push_back(read_function(entry));
  } else if (type == "namespace") {
    read_namespace(entry, out);
  } else if (type == "custom") {
    out.push_back(read_custom(entry));
  } else if (type == kToolSearch && entry.string("execution") == "client") {
    out.push_back(read_search(entry));
  } else {
    ignored_.add(entry.path("type=" + type));
  }
}

ResponsesTools::Entry ResponsesTools::read_function(Fields& entry) {
  Entry out;
  out.name_path = entry.path("name");
  out.tool.name = entry.require_string("name");
  check_tool_name(out.tool.name, out.name_path);
  out.tool.description = entry.string("description");
  out.tool.parameters = read_parameters(entry, "parameters", out.tool.name);
  out.tool.strict = entry.boolean("strict");
  if (entry.boolean("defer_loading").value_or(false)) entry.ignore("defer_loading");
  out.origin.name = out.tool.name;
  return out;
}

void ResponsesTools::read_namespace(Fields& entry, std::vector<Entry>& out) {
  const std::string name = entry.require_string("name");
  check_tool_name(name, entry.path("name"));
  const std::string description = entry.string("description").value_or("");
  const Json& list = entry.require("tools");
  if (!list.is_array()) malformed(entry.path("tools"), "a list", list);
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Fields inner(list[i], element_path(entry.path("tools"), i), ignored_);
    const std::string type = inner.require_string("type");
    if (type == "custom") {
      rejected(fmt::format(
                   "Currently custom tools are not allowed inside a namespace. Found custom tool '{}' in {}.",
                   inner.require_string("name"), inner.path()),
               inner.path("type"));
    }
    if (type != "function") {
      malformed(inner.path("type"), "function", type);
    }
    Entry function = read_function(inner);
    inner.finish();
    if (!names.insert(function.tool.name).second) {
      rejected("Tool names within a namespace must be unique.", inner.path("name"));
    }
    text::Tool& tool = function.tool;
    tool.name = shown_name(name, tool.name);
    if (const int repetition = seen_[tool.name]++) tool.name += fmt::format("_{}", repetition);
    if (!description.empty())
      tool.description = fmt::format("{}\n{}", description, tool.description.value_or(""));
    function.origin.name_space = name;
    out.push_back(std::move(function));
  }
}

ResponsesTools::Entry ResponsesTools::read_custom(Fields& entry) {
  const std::string name = entry.require_string("name");
  if (name != kApplyPatch) {
    rejected(fmt::format("Unsupported custom tool: '{}'. Only 'apply_patch' is supported.", name),
             entry.path("name"));
  }
  entry.ignore("description");
  entry.ignore("format");
  return {apply_patch_tool(), {ToolOrigin::Kind::custom, name, ""}, entry.path("name")};
}

ResponsesTools::Entry ResponsesTools::read_search(Fields& entry) {
  Entry out;
  out.name_path = entry.path("type");
  out.tool.name = std::string(kToolSearch);
  out.tool.description = entry.string("description");
  out.tool.parameters = read_parameters(entry, "parameters", out.tool.name);
  out.origin = {ToolOrigin::Kind::search, out.tool.name, ""};
  return out;
}

}  // namespace thalweg::wire
