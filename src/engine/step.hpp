// One step between scheduler and device: the plan of its rows, what to sample, and the results.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/sampling/sampling_state.hpp"
#include "model/step.hpp"

namespace thalweg::engine {

struct Sequence;

/// The rows of one sequence in a step.
struct StepPart {
  Sequence* sequence = nullptr;
  std::int64_t first_position = 0;
  std::int32_t rows = 0;
  std::int32_t sample = -1;  ///< its sample, or -1: its last row is not the newest token yet
};

/// The next tokens of one sequence: one, and with verified drafts one more for every draft that turns out
/// right.
struct SampleTask {
  std::shared_ptr<SamplingState> state;
  std::size_t logits = 0;            ///< of the newest token's row; those of the drafts' rows follow
  std::int64_t position = 0;         ///< of the first token drawn
  std::int64_t output_length = 0;    ///< output tokens before it
  std::vector<std::int32_t> drafts;  ///< verified: the tokens of the rows after the first
  bool draft_next = false;           ///< draft a block after the tokens drawn
  std::int32_t slot = 0;             ///< for drafting: where the windows are,
  std::int64_t floor = 0;            ///< and from which position on

  // Results.
  std::vector<std::int32_t> tokens;  ///< drawn; at least one unless there is an error
  bool has_logprobs = false;
  std::vector<OutputLogprobs> logprobs;  ///< one for every token; may be longer
  std::vector<std::int32_t> next_drafts;
  std::vector<float> next_confidences;  ///< of every draft, given that the ones before it are right
  std::string error;                    ///< not empty: no further token could be drawn
};

/// Log-probability of a prompt token, from the logits of the row before it.
struct PromptTask {
  Sequence* sequence = nullptr;
  std::size_t logits = 0;
  std::int32_t token = 0;
  std::int32_t top = 0;
  RowLogprobs result;
  std::string error;  ///< not empty: there is no result
};

/// Reused from step to step; its arrays keep their memory. In `plan.tokens` the value -1 - i stands for the
/// token that sample i of the step before it draws.
struct Step {
  model::StepPlan plan;
  std::vector<SampleTask> samples;
  std::size_t sample_count = 0;
  std::vector<PromptTask> prompt_tasks;
  std::size_t prompt_task_count = 0;
  std::vector<StepPart> parts;  ///< in the order of the plan's sequences
  std::uint64_t ticket = 0;     ///< of the device's queue
  bool after_idle = false;      ///< the device had nothing to do before it

  // Results.
  double seconds = 0;        ///< device time, drafting included
  double draft_seconds = 0;  ///< of which drafting
  std::int32_t drafted = 0;  ///< sequences that drafted
  double gap = 0;            ///< time the device waited before it
  std::exception_ptr error;

  void clear();
  SampleTask& add_sample();
  PromptTask& add_prompt_task();
};

}  // namespace thalweg::engine
