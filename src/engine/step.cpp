#include "engine/step.hpp"

namespace thalweg::engine {

void Step::clear() {
  plan.clear();
  sample_count = 0;
  prompt_task_count = 0;
  parts.clear();
  after_idle = false;
  error = nullptr;
  draft_seconds = 0;
  drafted = 0;
}

SampleTask& Step::add_sample() {
  if (sample_count == samples.size()) samples.emplace_back();
  SampleTask& task = samples[sample_count++];
  task.drafts.clear();
  task.draft_next = false;
  task.tokens.clear();
  task.next_drafts.clear();
  task.next_confidences.clear();
  task.error.clear();
  task.has_logprobs = false;
  return task;
}

PromptTask& Step::add_prompt_task() {
  if (prompt_task_count == prompt_tasks.size()) prompt_tasks.emplace_back();
  PromptTask& task = prompt_tasks[prompt_task_count++];
  task.error.clear();
  return task;
}

}  // namespace thalweg::engine
