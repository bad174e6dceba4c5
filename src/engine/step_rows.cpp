#include "engine/step_rows.hpp"

#include <algorithm>

namespace thalweg::engine {
namespace {

void add_prompt_tasks(Sequence& sequence, std::int32_t rows, Step& step) {
  const std::optional<std::int32_t>& top = sequence.active->request.sampling.prompt_logprobs;
  if (!top || sequence.choice != 0) return;
  const std::int32_t first_row = step.plan.sequences.back().first_row;
  const std::int64_t end = std::min(sequence.computed + rows, sequence.prompt_length - 1);
  std::int64_t& asked =
      sequence.active->prompt_rows_asked;  // beyond `computed` if the sequence gave way meanwhile
  for (; asked < end; ++asked) {
    PromptTask& task = step.add_prompt_task();
    task.sequence = &sequence;
    task.logits = step.plan.logit_rows.size();
    task.token = sequence.tokens[asked + 1];
    task.top = *top;
    task.result.top.reserve(static_cast<std::size_t>(*top));
    step.plan.logit_rows.push_back(first_row + static_cast<std::int32_t>(asked - sequence.computed));
  }
}

// Here, so that the device allocates nothing.
void make_room_for_logprobs(SampleTask& task) {
  const SamplingParams& params = task.state->params();
  task.has_logprobs = params.logprobs || params.filtered_logprobs;
  task.tokens.reserve(task.drafts.size() + 1);
  if (!task.has_logprobs) return;
  if (task.logprobs.size() <= task.drafts.size()) task.logprobs.resize(task.drafts.size() + 1);
  for (OutputLogprobs& row : task.logprobs) {
    row.raw.top.reserve(static_cast<std::size_t>(params.logprobs.value_or(0)));
    row.filtered.top.reserve(static_cast<std::size_t>(params.filtered_logprobs.value_or(0)));
  }
}

// The newest token's row and those of the drafts after it: draws the next tokens.
void add_sample(Sequence& sequence, Step& step) {
  SampleTask& task = step.add_sample();
  task.state = sequence.sampling;
  task.logits = step.plan.logit_rows.size();
  task.position = sequence.length();
  task.output_length = sequence.length() - sequence.prompt_length;
  const std::int64_t drafts = sequence.computed + step.parts.back().rows - sequence.length();
  task.drafts.assign(sequence.drafts.begin(), sequence.drafts.begin() + drafts);
  make_room_for_logprobs(task);
  task.draft_next = sequence.draft_next;
  task.slot = static_cast<std::int32_t>(sequence.place.slot());
  task.floor = sequence.active->decoder_floor;
  const auto end = static_cast<std::int32_t>(step.plan.tokens.size());
  for (auto row = static_cast<std::int32_t>(end - 1 - drafts); row < end; ++row)
    step.plan.logit_rows.push_back(row);
  step.parts.back().sample = static_cast<std::int32_t>(step.sample_count) - 1;
}

}  // namespace

void add_rows(Sequence& sequence, std::int32_t rows, std::int32_t lookback, Step& step) {
  model::StepPlan& plan = step.plan;
  model::StepSequence part;
  part.slot = static_cast<std::int32_t>(sequence.place.slot());
  part.first_row = static_cast<std::int32_t>(plan.tokens.size());
  part.rows = rows;
  part.first_position = sequence.computed;
  part.first_block = static_cast<std::int32_t>(plan.blocks.size());
  part.decoder_floor = sequence.active->decoder_floor;
  part.dropped_rows =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(part.decoder_floor - sequence.computed, 0, rows));
  for (const cache::BlockId block : sequence.place.blocks())
    plan.blocks.push_back(static_cast<std::int32_t>(block));
  const std::int64_t known = sequence.known();
  for (std::int64_t position = sequence.computed; position < sequence.computed + rows; ++position) {
    if (position < known) {
      plan.tokens.push_back(sequence.tokens[position]);
    } else {
      plan.tokens.push_back(sequence.pending > 0 ? -1 - sequence.pending_sample
                                                 : sequence.drafts[position - known]);
    }
    plan.image.push_back(0);
  }
  for (std::int64_t back = 1; back <= lookback; ++back) {
    const std::int64_t position = sequence.computed - back;
    plan.history.push_back(position >= 0 ? sequence.tokens[position] : -1);
  }
  plan.sequences.push_back(part);
  step.parts.push_back({&sequence, sequence.computed, rows, -1});
  add_prompt_tasks(sequence, rows, step);
  if (sequence.computed + rows >= sequence.length()) add_sample(sequence, step);
}

}  // namespace thalweg::engine
