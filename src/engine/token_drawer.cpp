#include "engine/token_drawer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.hpp"

namespace thalweg::engine {

TokenDrawer::TokenDrawer(backend::Backend& backend)
    : backend_(backend), scratch_(backend.model().config().vocab_size) {}

void TokenDrawer::draw(Step& step) {
  for (std::size_t i = 0; i < step.prompt_task_count; ++i) {
    PromptTask& task = step.prompt_tasks[i];
    try {
      raw_logprobs(backend_.logits(task.logits), task.token, task.top, task.result);
    } catch (const Error& error) {
      task.error = error.what();
    }
  }
  for (std::size_t i = 0; i < step.sample_count; ++i) verify(step.samples[i]);
  const auto begin = std::chrono::steady_clock::now();
  draft(step);
  if (step.drafted > 0) {
    step.draft_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
}

// Draws the token of every row until one differs from the draft that the next row was computed with.
void TokenDrawer::verify(SampleTask& task) {
  SamplingState& state = *task.state;
  try {
    for (std::size_t row = 0; row <= task.drafts.size(); ++row) {
      const auto offset = static_cast<std::int64_t>(row);
      const std::int32_t token =
          state.draw(backend_.logits(task.logits + row), task.position + offset, task.output_length + offset,
                     scratch_, task.has_logprobs ? &task.logprobs[row] : nullptr);
      task.tokens.push_back(token);
      if (row < task.drafts.size() && token != task.drafts[row]) break;
    }
  } catch (const Error& error) {
    // One row without a token must not stop the others; any token serves until the scheduler drops the row.
    task.error = error.what();
    task.tokens.push_back(0);
  }
}

void TokenDrawer::draft(Step& step) {
  sequences_.clear();
  drafting_.clear();
  drawn_before_.clear();
  for (std::size_t i = 0; i < step.sample_count; ++i) {
    SampleTask& task = step.samples[i];
    if (!task.draft_next || !task.error.empty()) continue;
    const auto last = task.position + static_cast<std::int64_t>(task.tokens.size()) - 1;
    sequences_.push_back({task.slot, task.tokens.back(), last, task.floor});
    drafting_.push_back(&task);
    drawn_before_.push_back(task.state->drawn());
  }
  step.drafted = static_cast<std::int32_t>(drafting_.size());
  if (drafting_.empty()) return;
  const backend::DraftResult result =
      backend_.draft(sequences_, [this](std::int32_t sequence, int position, std::span<const float> logits) {
        return draft_token(*drafting_[sequence], position, logits);
      });
  const std::size_t block = result.tokens.size() / drafting_.size();
  for (std::size_t s = 0; s < drafting_.size(); ++s) {
    SampleTask& task = *drafting_[s];
    task.state->rollback_to(drawn_before_[s]);
    for (std::size_t i = s * block; i < (s + 1) * block; ++i) {
      const float logit = std::clamp(result.confidence_logits[i], -60.0F, 60.0F);
      task.next_drafts.push_back(result.tokens[i]);
      task.next_confidences.push_back(1.0F / (1.0F + std::exp(-logit)));
    }
  }
}

// A draft is drawn as the target's token at its position would be, from the draft model's logits.
std::int32_t TokenDrawer::draft_token(SampleTask& task, int step, std::span<const float> logits) {
  const auto offset = static_cast<std::int64_t>(task.tokens.size()) + step;
  try {
    return task.state->draw(logits, task.position + offset, task.output_length + offset, scratch_);
  } catch (const NoTokenAllowed&) {
    return 0;  // whatever is drafted here and after it cannot be accepted
  }
}

}  // namespace thalweg::engine
