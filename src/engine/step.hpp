// One step between scheduler and device: the plan of its rows, what to sample, and the results.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/sampling/sampler.hpp"
#include "model/step.hpp"

namespace thalweg::engine {

/// What sampling the answers of one sequence needs. Only the device thread touches `counts`.
struct SamplingState {
  SamplingState(const Sampler& s, std::span<const std::int32_t> prompt, std::size_t reserve)
      : sampler(s), counts(prompt, s.params().has_penalties() ? reserve : 0) {}
  Sampler sampler;
  TokenCounts counts;
};

struct Sequence;

/// The rows of one sequence in a step.
struct StepPart {
  Sequence* sequence = nullptr;
  std::int32_t rows = 0;
  std::int32_t sample = -1;  ///< its sample, or -1: its last row is not the newest token yet
};

/// One token to draw in a step.
struct SampleTask {
  std::shared_ptr<SamplingState> state;
  std::size_t logits = 0;          ///< index among the plan's logit rows
  std::int64_t position = 0;       ///< of the token drawn
  std::int64_t output_length = 0;  ///< output tokens before it

  // Results.
  std::int32_t token = 0;
  bool has_logprobs = false;
  OutputLogprobs logprobs;
  std::string error;  ///< not empty: no token could be drawn
};

/// Log-probability of a prompt token, from the logits of the row before it.
struct PromptTask {
  Sequence* sequence = nullptr;
  std::size_t logits = 0;
  std::int32_t token = 0;
  std::int32_t top = 0;
  RowLogprobs result;
};

/// Reused from step to step; its arrays keep their memory. In `plan.tokens` the value -1 - i stands for the
/// token that sample i of the step before it draws.
struct Step {
  model::StepPlan plan;
  std::vector<SampleTask> samples;
  std::size_t sample_count = 0;
  std::vector<PromptTask> prompt_tasks;
  std::size_t prompt_task_count = 0;
  std::vector<StepPart> parts;  ///< in the order of the plan's sequences; forked answers follow without rows
  std::uint64_t ticket = 0;     ///< of the device's queue

  // Results.
  double seconds = 0;  ///< device time
  double gap = 0;      ///< time the device waited before it
  std::exception_ptr error;

  void clear();
  SampleTask& add_sample();
  PromptTask& add_prompt_task();
};

}  // namespace thalweg::engine
