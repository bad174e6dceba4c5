#include "text/parser_start.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "text/utf8.hpp"

namespace thalweg::text {
namespace {

constexpr std::array<std::pair<ParserStage, std::string_view>, 3> kStageNames = {{
    {ParserStage::reasoning, "ReasoningStart"},
    {ParserStage::reasoning_continuation, "ReasoningContinuation"},
    {ParserStage::answer_continuation, "ContentContinuation"},
}};

Json stage_to_json(ParserStage stage) {
  for (const auto& [value, name] : kStageNames) {
    if (value == stage) return std::string(name);
  }
  return nullptr;
}

ParserStage stage_from_json(const Json& value, const std::string& subject) {
  if (value.is_null()) return ParserStage::answer;
  for (const auto& [stage, name] : kStageNames) {
    if (value == name) return stage;
  }
  throw InputError(subject, "null, \"ReasoningStart\", \"ReasoningContinuation\" or \"ContentContinuation\"",
                   to_text(value));
}

bool bool_from_json(const Json& value, const std::string& subject) {
  if (!value.is_boolean()) throw InputError(subject, "true or false", value.type_name());
  return value.get<bool>();
}

std::vector<std::string> strings_from_json(const Json& value, const std::string& subject) {
  if (!value.is_array()) throw InputError(subject, "a list of strings", value.type_name());
  std::vector<std::string> strings;
  for (const Json& item : value) {
    if (!item.is_string()) {
      throw InputError(fmt::format("{}[{}]", subject, strings.size()), "a string", item.type_name());
    }
    strings.push_back(item.get<std::string>());
  }
  return strings;
}

}  // namespace

void check(const ParserStart& start, const std::string& subject) {
  const std::string member = subject + ".stop_sequences";
  if (start.stop_sequences.size() > ParserStart::kMaxStopSequences) {
    throw InputError(member, fmt::format("at most {} sequences", ParserStart::kMaxStopSequences),
                     std::to_string(start.stop_sequences.size()));
  }
  for (std::size_t i = 0; i < start.stop_sequences.size(); ++i) {
    const std::string& sequence = start.stop_sequences[i];
    const std::string item = fmt::format("{}[{}]", member, i);
    if (sequence.empty()) throw InputError(item, "at least one character", "an empty string");
    if (find_ill_formed_utf8(sequence) != sequence.size()) throw InputError(item, "not valid UTF-8");
  }
}

Json to_json(const ParserStart& start) {
  return Json{{"parse_tool_calls", start.parse_tool_calls},
              {"starts_in_tool_calls", start.starts_in_tool_calls},
              {"parse_json_output", start.parse_json_output},
              {"thinking_initial_stage", stage_to_json(start.stage)},
              {"stop_sequences", start.stop_sequences}};
}

ParserStart parser_start_from_json(const Json& value, const std::string& subject) {
  if (!value.is_object()) throw InputError(subject, "an object", value.type_name());
  ParserStart start;
  for (const auto& [name, member] : value.items()) {
    const std::string path = subject + "." + name;
    if (name == "stage" || name == "thinking_initial_stage") {
      start.stage = stage_from_json(member, path);
    } else if (name == "parse_tool_calls") {
      start.parse_tool_calls = bool_from_json(member, path);
    } else if (name == "starts_in_tool_calls") {
      start.starts_in_tool_calls = bool_from_json(member, path);
    } else if (name == "parse_json_output") {
      start.parse_json_output = bool_from_json(member, path);
    } else if (name == "stop_sequences") {
      start.stop_sequences = strings_from_json(member, path);
    } else {
      throw InputError(path, "unknown member");
    }
  }
  check(start, subject);
  return start;
}

}  // namespace thalweg::text
