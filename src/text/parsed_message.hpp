// What a model's output means: events as it arrives, and the message they add up to.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::text {

/// One piece of parsed output. Neighbouring pieces of one kind may be cut anywhere between characters; only
/// their concatenation and the order of kinds carry meaning.
struct ParseEvent {
  enum class Kind {
    reasoning,  ///< text: a piece of the reasoning
    content,    ///< text: a piece of the answer
    call,       ///< a tool call begins; text: the tool's name
    arguments,  ///< text: a piece of the call's arguments, a JSON object once call_end came
    call_end,   ///< the model finished the call's arguments; text is empty
    stop,       ///< a stop sequence was met; text: the sequence. No event follows
  };

  Kind kind;
  std::size_t call = 0;  ///< call, arguments, call_end: index of the call, from 0
  std::string text;      ///< whole UTF-8 characters

  bool operator==(const ParseEvent&) const = default;
};

/// "reasoning", "content", "call", "args", "call_end", "stop".
std::string_view to_string(ParseEvent::Kind kind);

/// Why generation ended, as the engine reports it.
enum class BackendFinish {
  stop,                          ///< EOS, or cancelled because of a stop sequence
  length,                        ///< the token limit
  content_filter,                ///< withheld
  insufficient_system_resource,  ///< the service gave the request up
};

/// "stop", "length", "content_filter", "insufficient_system_resource"; none for any other text.
std::optional<BackendFinish> backend_finish_from_string(std::string_view text);

/// Why the message ends, in the words of Chat Completions.
enum class FinishReason { stop, tool_calls, length, content_filter, insufficient_system_resource };

/// The name of the enumerator.
std::string_view to_string(FinishReason reason);

/// A tool call as parsed.
struct ParsedCall {
  std::string name;
  std::string arguments;  ///< concatenation of the argument pieces; a JSON object if `complete`
  bool complete = false;  ///< the model closed the call; false: the output was cut inside of it

  bool operator==(const ParsedCall&) const = default;
};

/// A whole answer.
struct ParsedMessage {
  std::optional<std::string> reasoning;  ///< none if the model wrote no reasoning text
  std::string content;
  std::vector<ParsedCall> calls;
  FinishReason finish_reason = FinishReason::stop;
  std::optional<std::string> stop_sequence;  ///< the one that ended the answer

  bool operator==(const ParsedMessage&) const = default;
};

/// Adds events up to the message.
class MessageAccumulator {
 public:
  void add(const ParseEvent& event);

  /// The message so far, ended for the reason `finish`: a stop sequence wins over whatever the engine says,
  /// and a stop after a call has begun is `tool_calls`. Leaves the accumulator empty.
  ParsedMessage finish(BackendFinish finish);

 private:
  ParsedMessage message_;
};

}  // namespace thalweg::text
