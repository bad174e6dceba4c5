#include "engine/scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "model/cache_layout.hpp"

namespace thalweg::engine {
namespace {

constexpr double kSmoothing = 0.1;  // weight of the newest measurement in a running mean

void blend(double& mean, double value) {
  mean = mean == 0 ? value : mean + kSmoothing * (value - mean);
}

}  // namespace

void Scheduler::add(std::unique_ptr<Sequence> sequence) {
  sequences_.push_back(std::move(sequence));
}

void Scheduler::learn_cost(std::int64_t rows, double seconds) {
  if (rows > 0) blend(seconds_per_row_, seconds / static_cast<double>(rows));
}

// Every running sequence keeps one row of the budget; a prompt chunk takes what the others leave.
bool Scheduler::plan(Step& step) {
  step.clear();
  step.plan.lookback = options_.lookback;
  line_.clear();
  for (const auto& sequence : sequences_) {
    sequence->in_step = false;
    if (sequence->stage != Sequence::Stage::finished && !sequence->full()) line_.push_back(sequence.get());
  }
  std::sort(line_.begin(), line_.end(),
            [](const Sequence* a, const Sequence* b) { return goes_before(*a, *b); });
  choose_drafts();
  std::int32_t budget = options_.batch_tokens - running_;
  bool door_open = true;
  for (std::size_t i = 0; i < line_.size(); ++i) {
    Sequence& sequence = *line_[i];
    const bool was_running = sequence.stage == Sequence::Stage::running;
    if (!was_running) {
      // An answer waits for the prompt of its request to be computed once.
      if (sequence.choice > 0 && !sequence.active->prompt_done) continue;
      door_open = door_open && budget > 0 && admit(sequence);  // nobody overtakes
      if (!door_open) continue;
    }
    if (was_running) ++budget;
    if (sequence.rows_left() > 0 && schedule(sequence, budget, step)) budget -= step.parts.back().rows;
  }
  return !step.parts.empty();
}

bool Scheduler::admit(Sequence& sequence) {
  // Whoever is further ahead in line takes the place of a running one of lower priority, not of equal
  // priority.
  if (running_ >= options_.sequences) {
    Sequence* last = nullptr;
    for (Sequence* other : line_) {
      if (other->stage == Sequence::Stage::running && !other->in_step) last = other;
    }
    const bool may = last != nullptr && goes_before(sequence, *last) &&
                     last->active->request.priority < sequence.active->request.priority;
    if (!may) return false;
    preempt(*last);
  }
  if (sequence.saved) {
    std::optional<cache::Sequence> place = cache_.restore(*sequence.saved);
    if (!place) return false;
    sequence.place = std::move(*place);
    sequence.saved.reset();
  } else {
    const ActiveRequest& active = *sequence.active;
    const bool wants_rows = active.request.sampling.prompt_logprobs && sequence.choice == 0 &&
                            active.prompt_rows_asked < sequence.prompt_length - 1;
    const cache::Prompt prompt{
        sequence.content(), active.request.cache_salt,
        wants_rows ? active.prompt_rows_asked : std::numeric_limits<std::int64_t>::max()};
    std::optional<cache::Admission> admission = cache_.acquire(prompt);
    if (!admission) return false;
    sequence.place = std::move(admission->sequence);
    sequence.computed = admission->hit.resume_at;
    if (!sequence.active->prompt_counted) {
      Usage& usage = sequence.active->usage;
      usage.prompt_tokens = sequence.prompt_length;
      usage.reused_tokens = admission->hit.resume_at;
      usage.replayed_tokens = admission->hit.replayed;
      usage.computed_tokens = usage.prompt_tokens - usage.reused_tokens - usage.replayed_tokens;
      sequence.active->prompt_counted = true;
    }
  }
  sequence.stage = Sequence::Stage::running;
  ++running_;
  return true;
}

// Asks the policy about the sequences that are at their newest token.
void Scheduler::choose_drafts() {
  for (Sequence* sequence : line_) {
    sequence->verify = 0;
    sequence->draft_next = policy_ != nullptr;  // after a prompt
  }
  if (policy_ == nullptr) return;
  views_.clear();
  int other_rows = 0;
  for (Sequence* sequence : line_) {
    if (sequence->stage != Sequence::Stage::running) continue;
    if (sequence->rows_left() != 1) {
      other_rows += static_cast<int>(std::min<std::int64_t>(sequence->rows_left(), options_.batch_tokens));
      continue;
    }
    // Neither beyond the answer's end nor beyond the context: the row of every draft takes a position.
    const std::int64_t limit = std::min({static_cast<std::int64_t>(sequence->drafts.size()),
                                         sequence->active->max_length - sequence->length() - 1,
                                         options_.context - sequence->length()});
    views_.push_back(
        {sequence->id, sequence->confidences, static_cast<int>(std::max<std::int64_t>(0, limit))});
  }
  other_rows = std::min(other_rows, options_.batch_tokens);
  policy_->choose(views_, other_rows);
  std::size_t view = 0;
  for (Sequence* sequence : line_) {
    if (sequence->stage != Sequence::Stage::running || sequence->rows_left() != 1) continue;
    sequence->verify = views_[view].verify;
    sequence->draft_next = views_[view].draft_next;
    ++view;
  }
}

// Rows of a prompt chunk end where prompts can resume later.
std::int32_t Scheduler::chunk_of(const Sequence& sequence, std::int32_t budget) const {
  if (sequence.verify > 0 && sequence.verify < budget) return 1 + sequence.verify;
  const std::int64_t boundary = (sequence.computed / options_.snapshot_every + 1) * options_.snapshot_every;
  return static_cast<std::int32_t>(
      std::min({sequence.rows_left(), std::int64_t{budget}, boundary - sequence.computed}));
}

bool Scheduler::schedule(Sequence& sequence, std::int32_t budget, Step& step) {
  const std::int32_t rows = chunk_of(sequence, budget);
  if (rows <= 0) return false;
  while (!cache_.reserve(sequence.place, sequence.computed, sequence.computed + rows)) {
    if (!make_room(sequence)) return false;
  }
  add_rows(sequence, rows, step);
  return true;
}

// Makes the last in line give way. False: it is this one's own turn to wait, or to give way.
bool Scheduler::make_room(const Sequence& for_whom) {
  for (auto other = line_.rbegin(); other != line_.rend(); ++other) {
    Sequence& last = **other;
    if (last.stage != Sequence::Stage::running || last.in_step) continue;
    const bool itself = &last == &for_whom;
    if (itself && running_ == 1) return false;  // nobody holds blocks but itself and the rows in flight
    preempt(last);
    return !itself;
  }
  return false;
}

void Scheduler::stop_running(Sequence& sequence) {
  sequence.place.reset();
  --running_;
}

// Saving moves the state twice, out now and in again; computing again costs its rows. Without measurements:
// save.
bool Scheduler::cheaper_to_save(const Sequence& sequence) const {
  const std::size_t bytes = sequence.place.blocks().size() * options_.block_bytes + options_.slot_bytes;
  return 2 * static_cast<double>(bytes) * seconds_per_byte_ <=
         static_cast<double>(sequence.computed) * seconds_per_row_ + (seconds_per_row_ == 0 ? 1.0 : 0.0);
}

void Scheduler::preempt(Sequence& victim) {
  const auto begin = Clock::now();
  if (cheaper_to_save(victim)) victim.saved = cache_.save(victim.place, victim.computed);
  if (victim.saved) {
    blend(seconds_per_byte_, std::chrono::duration<double>(Clock::now() - begin).count() /
                                 static_cast<double>(std::max<std::size_t>(1, victim.saved->bytes())));
    ++statistics_.preempted_saved;
    --running_;
  } else {
    ++statistics_.preempted_dropped;
    statistics_.recomputed_tokens += static_cast<std::uint64_t>(victim.computed);
    stop_running(victim);
    victim.computed = 0;
  }
  victim.drafts.clear();
  victim.confidences.clear();
  victim.stage = Sequence::Stage::waiting;
}

void Scheduler::add_rows(Sequence& sequence, std::int32_t rows, Step& step) {
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
  const auto known = static_cast<std::int64_t>(sequence.tokens.size());
  for (std::int64_t position = sequence.computed; position < sequence.computed + rows; ++position) {
    if (position < known) {
      plan.tokens.push_back(sequence.tokens[position]);
    } else {
      plan.tokens.push_back(sequence.pending > 0 ? -1 - sequence.pending_sample
                                                 : sequence.drafts[position - known]);
    }
    plan.image.push_back(0);
  }
  for (std::int64_t back = 1; back <= options_.lookback; ++back) {
    const std::int64_t position = sequence.computed - back;
    plan.history.push_back(position >= 0 ? sequence.tokens[position] : -1);
  }
  plan.sequences.push_back(part);
  step.parts.push_back({&sequence, sequence.computed, rows, -1});
  sequence.in_step = true;
  ++sequence.in_flight;
  add_prompt_tasks(sequence, rows, step);
  if (sequence.computed + rows >= sequence.length()) add_sample(sequence, step);
}

void Scheduler::add_prompt_tasks(Sequence& sequence, std::int32_t rows, Step& step) {
  const std::optional<std::int32_t>& top = sequence.active->request.sampling.prompt_logprobs;
  if (!top || sequence.choice != 0) return;
  const std::int32_t first_row = step.plan.sequences.back().first_row;
  for (std::int64_t position = sequence.computed; position < sequence.computed + rows; ++position) {
    if (position + 1 >= sequence.prompt_length) break;
    if (position != sequence.active->prompt_rows_asked) continue;  // had before the sequence was preempted
    ++sequence.active->prompt_rows_asked;
    PromptTask& task = step.add_prompt_task();
    task.sequence = &sequence;
    task.logits = step.plan.logit_rows.size();
    task.token = sequence.tokens[position + 1];
    task.top = *top;
    step.plan.logit_rows.push_back(first_row + static_cast<std::int32_t>(position - sequence.computed));
  }
}

// The newest token's row and those of the drafts after it: draws the next tokens.
void Scheduler::add_sample(Sequence& sequence, Step& step) {
  SampleTask& task = step.add_sample();
  task.state = sequence.sampling;
  task.logits = step.plan.logit_rows.size();
  task.position = sequence.length();
  task.output_length = sequence.produced();
  const std::int64_t drafts = sequence.computed + step.parts.back().rows - sequence.length();
  task.drafts.assign(sequence.drafts.begin(), sequence.drafts.begin() + drafts);
  task.draft_next = sequence.draft_next;
  task.slot = static_cast<std::int32_t>(sequence.place.slot());
  task.floor = sequence.active->decoder_floor;
  const auto end = static_cast<std::int32_t>(step.plan.tokens.size());
  for (auto row = static_cast<std::int32_t>(end - 1 - drafts); row < end; ++row)
    step.plan.logit_rows.push_back(row);
  step.parts.back().sample = static_cast<std::int32_t>(step.sample_count) - 1;
}

void Scheduler::launched(Step& step) {
  const std::size_t planned = step.parts.size();
  for (std::size_t i = 0; i < planned; ++i) {
    StepPart& part = step.parts[i];
    Sequence& sequence = *part.sequence;
    const bool prompt = sequence.computed < sequence.prompt_length;
    sequence.computed += part.rows;
    if (part.sample >= 0) {
      sequence.pending = 1;
      sequence.pending_sample = part.sample;
    }
    if (!prompt) continue;
    if (sequence.computed < sequence.prompt_length) {
      cache_.publish(sequence.place, sequence.content(), sequence.computed,
                     sequence.computed % options_.snapshot_every == 0);
    } else {
      sequence.active->prompt_done = true;
      // The rings still hold what the position before needs, so the same prompt can resume at its last token.
      cache_.publish(sequence.place, sequence.content(), sequence.prompt_length - 1,
                     sequence.prompt_length > 1);
    }
  }
}

void Scheduler::finish(Sequence& sequence, bool keep) {
  if (sequence.stage == Sequence::Stage::running) {
    // The last token has no row yet (or one whose result nobody wants).
    const auto known = static_cast<std::int64_t>(sequence.tokens.size());
    const std::int64_t computed = std::min(sequence.computed, known - 1);
    const bool beyond_prompt = computed >= sequence.prompt_length;
    if (keep && beyond_prompt) cache_.publish(sequence.place, sequence.content(), computed, true);
    stop_running(sequence);
  }
  sequence.saved.reset();
  sequence.stage = Sequence::Stage::finished;
}

void Scheduler::collect() {
  std::erase_if(sequences_, [](const std::unique_ptr<Sequence>& sequence) {
    return sequence->stage == Sequence::Stage::finished && sequence->in_flight == 0;
  });
}

}  // namespace thalweg::engine
