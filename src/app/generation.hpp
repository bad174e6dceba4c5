// From what a user asks (a raw prompt, a conversation, a line of a batch) to engine requests, and from events
// to results.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/engine_options.hpp"
#include "base/json.hpp"
#include "engine/engine.hpp"
#include "text/parsed_message.hpp"

namespace thalweg::app {

/// Sampling as flags or as members of a batch line.
struct SamplingOptions {
  double temperature = 1;
  double top_p = 1;
  std::int32_t top_k = 0;
  double min_p = 0;
  double repetition_penalty = 1;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::optional<std::uint64_t> seed;
  std::int64_t max_tokens = 256;
  std::int64_t min_tokens = 0;
  std::int32_t n = 1;
  std::optional<std::int32_t> logprobs;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::optional<grammar::Constraint> constraint;  ///< without `after_token`
};

void add_sampling_options(CLI::App& command, SamplingOptions& options);

/// `--json-object`, `--regex`, `--grammar`, `--choice`.
void add_constraint_options(CLI::App& command, SamplingOptions& options);

/// Throws UsageError naming the flag whose value the sampler would refuse; before any weight is read.
void check_sampling_options(const SamplingOptions& options);

/// Flags that shape the engine itself (`--mode`, `--sequences`, `--context`, caches ...).
void add_serving_options(CLI::App& command, engine::EngineOptions& options);

/// Those of them that are neither `--speculate` nor `--sequences`.
void add_step_options(CLI::App& command, engine::EngineOptions& options);

/// A request that continues `prompt` as raw text: BOS in front, control tokens recognised where they are
/// spelled.
engine::Request raw_request(const engine::LoadedModel& model, const std::string& prompt,
                            const SamplingOptions& sampling);

/// A request from the body of a Chat Completions request; what the body leaves out comes from `sampling`.
/// Throws InputError(subject, ...) for a body that the API would refuse.
engine::Request chat_request(const engine::LoadedModel& model, const Json& body, const std::string& subject,
                             const SamplingOptions& sampling);

/// The body of a conversation with one user message.
Json user_body(const std::string& system, const std::string& user, bool thinking,
               const std::optional<int>& effort);

/// Sampling of a batch line: `defaults`, then the line's own members, which are removed from it.
SamplingOptions take_sampling(Json& line, const SamplingOptions& defaults, const std::string& subject);

/// The answers of one request, collected from its events.
class Answers {
 public:
  explicit Answers(const engine::Request& request);
  /// True with the last event of the last answer.
  bool add(const engine::Event& event);
  /// {"choices": [...], "usage": {...}}.
  Json json() const;
  /// The text of the first answer (its content, for chat).
  const std::string& text() const { return answers_.front().text; }
  /// What went wrong with an answer, or empty.
  std::string error() const;
  /// The same, if the request was wrong, which was seen late (its constraint cannot be compiled).
  std::string refusal() const;

 private:
  struct Answer {
    std::string text;
    text::MessageAccumulator message;
    std::optional<text::ParsedMessage> parsed;
    std::vector<std::int32_t> tokens;
    Json logprobs = Json::array();
    std::optional<engine::Finish> finish;
    std::string stop_string;
    std::string error;
  };
  Json answer_json(const Answer& answer, std::size_t index) const;

  bool chat_ = false;
  bool wants_logprobs_ = false;
  std::size_t open_ = 0;
  std::vector<Answer> answers_;
  engine::Usage usage_;
};

}  // namespace thalweg::app
