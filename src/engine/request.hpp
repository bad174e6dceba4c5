// What goes into the engine and what comes out.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sampling/sampler.hpp"
#include "engine/sampling/sampling_params.hpp"
#include "grammar/constraint.hpp"
#include "text/output_parser.hpp"
#include "text/parsed_message.hpp"

namespace thalweg::engine {

using RequestId = std::uint64_t;
using Clock = std::chrono::steady_clock;

/// Why an answer ended.
enum class Finish {
  stop,      ///< end of sequence, a stop token or a stop string
  length,    ///< max_tokens, or the context is full
  aborted,   ///< the caller cancelled
  deadline,  ///< its deadline passed
  refused,   ///< its constraint cannot be compiled; `Event::error` names the field
  failed,    ///< `Event::error` says why
};
std::string_view to_text(Finish finish);

/// One prompt and what is wanted of it.
struct Request {
  std::vector<std::int32_t> prompt;
  SamplingParams sampling;
  std::string cache_salt;  ///< requests of different salts never share cached prefixes
  int priority = 0;        ///< higher goes first
  std::optional<Clock::time_point> deadline;
  /// Chat output: how the output parser starts. Absent: the text is given out as it is.
  std::optional<text::ParserStart> parse;
  /// What the output is held to. It ends when it is complete and the model ends it: neither `ignore_eos` nor
  /// `min_tokens` goes with it. Compiled beside the steps: until then the request waits.
  std::optional<grammar::Constraint> constraint;
};

/// Tokens of an answer, and where its prompt's came from: reused + replayed + computed = prompt.
struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t reused_tokens = 0;    ///< state taken from the cache
  std::int64_t replayed_tokens = 0;  ///< cached, but run again to bring windows back
  std::int64_t computed_tokens = 0;
  std::int64_t output_tokens = 0;  ///< end of sequence not counted
};

/// One step of one answer. Of every answer (`choice`) the last event has `finish`.
struct Event {
  RequestId request = 0;
  std::int32_t choice = 0;
  std::optional<std::int32_t> token;         ///< the token just produced
  bool accepted_draft = false;               ///< it was drafted, and the target agreed
  std::string text;                          ///< newly visible text; requests without `parse`
  std::vector<text::ParseEvent> parsed;      ///< newly parsed output; requests with `parse`
  const OutputLogprobs* logprobs = nullptr;  ///< of `token`, if asked for; valid during the call
  const std::vector<RowLogprobs>* prompt_logprobs =
      nullptr;  ///< with the first event of choice 0, if asked for
  std::optional<Finish> finish;
  std::string stop_string;  ///< the stop string that ended the answer
  std::string error;
  Usage usage;  ///< of the prompt with every event; `output_tokens` with `finish`
};

/// Receives the events of a request, in order, on the engine's thread: it must not block.
using EventSink = std::function<void(const Event&)>;

}  // namespace thalweg::engine
