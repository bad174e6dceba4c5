// What becomes of drawn tokens: stop rules, text, and the events of an answer.
#include <algorithm>
#include <chrono>

#include "engine/engine.hpp"

namespace thalweg::engine {

void Engine::take_prompt_logprobs(Step& step) {
  for (std::size_t i = 0; i < step.prompt_task_count; ++i) {
    PromptTask& task = step.prompt_tasks[i];
    if (task.sequence->stage == Sequence::Stage::finished) continue;
    if (task.error.empty()) {
      task.sequence->active->prompt_logprobs.push_back(task.result);
      continue;
    }
    Event event;
    event.error = task.error;
    end_answer(*task.sequence, Finish::failed, event);
  }
}

void Engine::take_tokens(Sequence& sequence, const StepPart& part, SampleTask& task) {
  const auto verified = static_cast<int>(task.drafts.size());
  ++counted_.draws;
  if (verified > 0) {
    const int accepted = static_cast<int>(task.tokens.size()) - 1;
    counted_.drafts_verified += static_cast<std::uint64_t>(verified);
    counted_.drafts_accepted += static_cast<std::uint64_t>(accepted);
    const int places = std::min(accepted + 1, static_cast<int>(counted_.drafts_tried_at.size()));
    for (int i = 0; i < std::min(verified, places); ++i) ++counted_.drafts_tried_at[i];
    for (int i = 0; i < std::min(accepted, places); ++i) ++counted_.drafts_accepted_at[i];
    policy_->observe_drafts({sequence.confidences, verified, accepted});
    // The rows of wrong drafts are as if they had never been: their positions are computed again.
    sequence.computed = part.first_position + 1 + accepted;
  }
  sequence.drafts.assign(task.next_drafts.begin(), task.next_drafts.end());
  sequence.confidences.assign(task.next_confidences.begin(), task.next_confidences.end());
  if (!task.error.empty()) task.tokens.pop_back();
  for (std::size_t i = 0; i < task.tokens.size(); ++i) {
    const bool accepted = i + 1 < task.tokens.size() || !task.error.empty();
    if (take_token(sequence, task.tokens[i], accepted, task.has_logprobs ? &task.logprobs[i] : nullptr))
      return;
  }
  if (task.error.empty()) return;
  Event event;
  event.error = task.error;
  end_answer(sequence, Finish::failed, event);
}

// True: the answer has ended.
bool Engine::take_token(Sequence& sequence, std::int32_t token, bool accepted_draft,
                        const OutputLogprobs* logprobs) {
  Event event;
  sequence.tokens.push_back(token);
  event.token = token;
  event.accepted_draft = accepted_draft;
  event.logprobs = logprobs;
  const bool first = sequence.produced() == 1;
  if (first && sequence.choice == 0 && sequence.active->request.sampling.prompt_logprobs) {
    event.prompt_logprobs = &sequence.active->prompt_logprobs;
  }
  if (const std::optional<Finish> finish = ending(sequence, token, event)) {
    end_answer(sequence, *finish, event);
    return true;
  }
  event.request = sequence.active->id;
  event.choice = sequence.choice;
  event.usage = sequence.active->usage;
  event.usage.prompt_tokens = sequence.prompt_length;
  sequence.active->sink(event);
  return false;
}

// The rules that end an answer, in this order: end of sequence and stop tokens, stop strings, length.
std::optional<Finish> Engine::ending(Sequence& sequence, std::int32_t token, Event& event) {
  const SamplingParams& params = sequence.active->request.sampling;
  const bool is_eos = token == model_.model.config().eos_token_id && !params.ignore_eos;
  const bool armed = sequence.produced() >= params.min_tokens;
  if (is_eos) return Finish::stop;
  if (std::ranges::find(params.stop_tokens, token) != params.stop_tokens.end()) return Finish::stop;
  if (sequence.output->push(token, armed, event)) return Finish::stop;
  if (sequence.known() >= sequence.active->max_length) return Finish::length;
  return std::nullopt;
}

void Engine::end_answer(Sequence& sequence, Finish finish, Event& event) {
  ActiveRequest& active = *sequence.active;
  const bool complete = finish == Finish::stop || finish == Finish::length;
  if (event.stop_string.empty()) sequence.output->finish(event);
  event.request = active.id;
  event.choice = sequence.choice;
  event.finish = finish;
  event.usage = active.usage;
  event.usage.prompt_tokens = sequence.prompt_length;
  event.usage.output_tokens = static_cast<std::int64_t>(sequence.tokens.size()) - sequence.prompt_length;
  const bool ends_with_eos = event.token && *event.token == model_.model.config().eos_token_id &&
                             !active.request.sampling.ignore_eos && finish == Finish::stop;
  if (ends_with_eos) --event.usage.output_tokens;
  scheduler_->finish(sequence, complete);
  counted_.output_tokens += static_cast<std::uint64_t>(event.usage.output_tokens);
  if (--active.open_choices == 0) count_request(active, finish);
  active.sink(event);
}

void Engine::count_request(const ActiveRequest& active, Finish finish) {
  if (active.started) {
    counted_.queue_seconds.observe(std::chrono::duration<double>(*active.started - active.submitted).count());
  }
  if (active.prompt_counted) {
    counted_.prompt_tokens += static_cast<std::uint64_t>(active.usage.prompt_tokens);
    counted_.reused_tokens += static_cast<std::uint64_t>(active.usage.reused_tokens);
    counted_.replayed_tokens += static_cast<std::uint64_t>(active.usage.replayed_tokens);
    counted_.computed_tokens += static_cast<std::uint64_t>(active.usage.computed_tokens);
  }
  const bool was_aborted = finish == Finish::aborted || finish == Finish::deadline;
  ++(was_aborted ? counted_.aborted : counted_.finished);
}

}  // namespace thalweg::engine
