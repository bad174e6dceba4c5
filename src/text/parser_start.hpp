// Where the parser of a model's output begins: what the prompt left open, and what is looked for.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"

namespace thalweg::text {

/// What the prompt ends inside of.
enum class ParserStage {
  answer,                  ///< thinking off (also with a prefix): leading newlines of the answer are dropped
  reasoning,               ///< thinking on: leading newlines of the reasoning are dropped
  reasoning_continuation,  ///< a prefix ends inside the reasoning: its newlines are kept
  answer_continuation,     ///< thinking on, and a prefix ends inside the answer: its newlines are kept
};

/// What becomes of a call whose arguments are cut off by the end of the output.
enum class CutArguments {
  as_streamed,  ///< they stay as the model left them, usually not JSON, and the call is marked incomplete
  closed,       ///< the shortest text that makes them a JSON object is added; the call is marked incomplete
};

/// Initial state of an OutputParser. Written by the prompt renderer, which knows how the prompt ends.
struct ParserStart {
  ParserStage stage = ParserStage::answer;
  bool parse_tool_calls = false;  ///< tools are in force: a calls block is markup, not text
  bool starts_in_tool_calls =
      false;  ///< the prompt itself opened the block (tool choice "required"); the stage does not count
  bool parse_json_output = false;           ///< json_object format: only the JSON of the answer is content
  std::vector<std::string> stop_sequences;  ///< at most kMaxStopSequences, none empty, each valid UTF-8
  CutArguments cut_arguments = CutArguments::as_streamed;

  static constexpr std::size_t kMaxStopSequences = 16;

  bool operator==(const ParserStart&) const = default;
};

/// Throws InputError(subject, ...) naming the member that breaks what ParserStart promises.
void check(const ParserStart& start, const std::string& subject);

/// {"parse_tool_calls", "starts_in_tool_calls", "parse_json_output", "thinking_initial_stage",
/// "stop_sequences"}. The stage is null, "ReasoningStart", "ReasoningContinuation" or "ContentContinuation";
/// how cut arguments are treated is a setting of the service, not of the prompt, and is left out.
Json to_json(const ParserStart& start);

/// Reads the object that to_json() writes; the stage may also be called "stage". Members that are absent keep
/// their defaults. Throws InputError(subject, ...) for unknown members and wrong types or values.
ParserStart parser_start_from_json(const Json& value, const std::string& subject);

}  // namespace thalweg::text
