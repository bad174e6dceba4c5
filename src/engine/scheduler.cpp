#include "engine/scheduler.hpp"

#include <algorithm>
#include <utility>

#include "engine/step_rows.hpp"

namespace thalweg::engine {
namespace {

constexpr double kSmoothing = 0.1;  // weight of the newest measurement in a running mean

using Stage = Sequence::Stage;

// Running and with a token to compute.
bool is_ready(const Sequence& sequence) {
  return sequence.stage == Stage::running && !sequence.full() && sequence.rows_left() > 0;
}

}  // namespace

void Scheduler::add(std::unique_ptr<Sequence> sequence) {
  const auto behind =
      std::upper_bound(sequences_.begin(), sequences_.end(), sequence,
                       [](const std::unique_ptr<Sequence>& a, const std::unique_ptr<Sequence>& b) {
                         return goes_before(*a, *b);
                       });
  sequences_.insert(behind, std::move(sequence));
}

void Scheduler::learn_cost(std::int64_t rows, double seconds) {
  if (rows == 0) return;
  const double cost = seconds / static_cast<double>(rows);
  seconds_per_row_ = seconds_per_row_ == 0 ? cost : seconds_per_row_ + kSmoothing * (cost - seconds_per_row_);
}

// Every running sequence keeps one row of the budget; a prompt chunk takes what the others leave.
bool Scheduler::plan(Step& step) {
  step.clear();
  step.plan.lookback = options_.lookback;
  ++plans_;
  choose_drafts();
  budget_ = options_.batch_tokens - running_;
  bool door_open = true;
  std::int32_t seen = 0;  // running ones
  for (std::size_t i = 0; i < sequences_.size() && (door_open || seen < running_); ++i) {
    Sequence& sequence = *sequences_[i];
    if (sequence.stage == Stage::running) {
      ++budget_;
    } else {
      if (sequence.stage == Stage::finished || sequence.full()) continue;
      // An answer waits for the prompt of its request to be computed once.
      if (sequence.choice > 0 && !sequence.active->prompt_done) continue;
      // Nobody overtakes, and who has just given way does not come back at once. (Where all slots are taken,
      // a row comes with the slot.)
      const bool has_row = budget_ > 0 || running_ >= options_.sequences;
      door_open = door_open && has_row && sequence.gave_way != plans_ && admit(i);
      if (!door_open) continue;
    }
    ++seen;
    if (is_ready(sequence)) schedule(i, step);
  }
  return !step.parts.empty();
}

cache::Prompt Scheduler::prompt_of(const Sequence& sequence) const {
  const ActiveRequest& active = *sequence.active;
  // Rows whose logits are still wanted (prompt log-probabilities) must run.
  const bool wants_rows = active.request.sampling.prompt_logprobs && sequence.choice == 0 &&
                          active.prompt_rows_asked < sequence.prompt_length - 1;
  return {sequence.content(), active.request.cache_salt,
          wants_rows ? std::min(active.prompt_rows_asked, active.last_resume) : active.last_resume};
}

std::int64_t Scheduler::blocks_lacking(const Sequence& sequence) const {
  return std::max<std::int64_t>(
      0, blocks_for(sequence.length()) - static_cast<std::int64_t>(sequence.place.blocks().size()));
}

// Blocks that can be had, less what running sequences lack for the tokens they have.
std::int64_t Scheduler::uncommitted_blocks() const {
  std::int64_t blocks = cache_.available_blocks();
  std::int32_t seen = 0;
  for (std::size_t i = 0; seen < running_; ++i) {
    if (sequences_[i]->stage != Stage::running) continue;
    ++seen;
    blocks -= blocks_lacking(*sequences_[i]);
  }
  return blocks;
}

bool Scheduler::admit(std::size_t index) {
  Sequence& sequence = *sequences_[index];
  if (refused_ == sequence.id && refused_epoch_ == epoch_) return false;
  if (make_way(index) && start(sequence)) return true;
  refused_ = sequence.id;
  refused_epoch_ = epoch_;
  return false;
}

// Whether there are a slot and blocks for the sequence. Those behind it of lower priority (not of equal
// priority) give way if that makes it so.
bool Scheduler::make_way(std::size_t index) {
  const Sequence& sequence = *sequences_[index];
  const std::size_t slots = running_ < options_.sequences ? 0 : 1;
  const bool outranks =
      std::any_of(sequences_.begin() + static_cast<std::ptrdiff_t>(index), sequences_.end(),
                  [&](const std::unique_ptr<Sequence>& other) {
                    return other->stage == Stage::running &&
                           other->active->request.priority < sequence.active->request.priority;
                  });
  if (slots > 0 && !outranks) return false;
  const std::int64_t length = sequence.length();
  const std::int64_t needed = sequence.saved ? cache_.blocks_to_restore(*sequence.saved, length)
                                             : cache_.blocks_to_start(prompt_of(sequence), length);
  const std::int64_t short_of = needed - uncommitted_blocks();
  if (slots == 0 && short_of <= 0) return true;
  return outranks && preempt_behind(index, {.slots = slots,
                                            .blocks = short_of,
                                            .commitments = true,
                                            .below_priority = sequence.active->request.priority});
}

bool Scheduler::start(Sequence& sequence) {
  if (sequence.saved) {
    std::optional<cache::Sequence> place = cache_.restore(*sequence.saved);
    if (!place) return false;
    sequence.place = std::move(*place);
    sequence.saved.reset();
  } else {
    std::optional<cache::Admission> admission = cache_.acquire(prompt_of(sequence));
    if (!admission) return false;
    sequence.place = std::move(admission->sequence);
    sequence.computed = admission->hit.resume_at;
    if (!std::exchange(sequence.active->prompt_counted, true)) {
      Usage& usage = sequence.active->usage;
      usage.prompt_tokens = sequence.prompt_length;
      usage.reused_tokens = admission->hit.resume_at;
      usage.replayed_tokens = admission->hit.replayed;
      usage.computed_tokens = usage.prompt_tokens - usage.reused_tokens - usage.replayed_tokens;
    }
  }
  enter(sequence);
  return true;
}

// Asks the policy about the sequences that are at their newest token.
void Scheduler::choose_drafts() {
  const auto at_newest = [](const Sequence& sequence) {
    return is_ready(sequence) && sequence.rows_left() == 1;
  };
  if (policy_ == nullptr) return;
  for (const auto& sequence : sequences_) {
    sequence->verify = 0;
    sequence->draft_next = true;  // after a prompt
  }
  views_.clear();
  std::int64_t other_rows = 0;
  for (const auto& sequence : sequences_) {
    if (!is_ready(*sequence)) continue;
    if (!at_newest(*sequence)) {
      other_rows += sequence->rows_left();
      continue;
    }
    // Neither beyond the answer's end nor beyond the context: the row of every draft takes a position.
    const std::int64_t limit = std::min({static_cast<std::int64_t>(sequence->drafts.size()),
                                         sequence->active->max_length - sequence->length() - 1,
                                         options_.context - sequence->length()});
    views_.push_back(
        {sequence->id, sequence->confidences, static_cast<int>(std::max<std::int64_t>(0, limit))});
  }
  policy_->choose(views_, static_cast<int>(std::min<std::int64_t>(other_rows, options_.batch_tokens)));
  std::size_t view = 0;
  for (const auto& sequence : sequences_) {
    if (!at_newest(*sequence)) continue;
    sequence->verify = views_[view].verify;
    sequence->draft_next = views_[view].draft_next;
    ++view;
  }
}

// A chunk of a prompt ends where prompts can resume later, and at its end. (Computing again what followed the
// prompt takes chunks of its own: the windows of the prompt's end must not be passed before they are
// published.)
std::int32_t Scheduler::chunk_of(const Sequence& sequence) const {
  if (sequence.verify > 0 && sequence.verify < budget_) return 1 + sequence.verify;
  std::int64_t rows = std::min<std::int64_t>(sequence.rows_left(), budget_);
  if (sequence.computed < sequence.prompt_length) {
    const std::int64_t boundary = (sequence.computed / options_.snapshot_every + 1) * options_.snapshot_every;
    rows = std::min({rows, boundary - sequence.computed, sequence.prompt_length - sequence.computed});
  }
  return static_cast<std::int32_t>(rows);
}

void Scheduler::schedule(std::size_t index, Step& step) {
  Sequence& sequence = *sequences_[index];
  const std::int32_t rows = chunk_of(sequence);
  if (rows <= 0) return;
  const std::int64_t end = sequence.computed + rows;
  while (!cache_.reserve(sequence.place, sequence.computed, end)) {
    if (!make_room(index, end)) return;  // waits for those before it
  }
  add_rows(sequence, rows, options_.lookback, step);
  budget_ -= rows;
}

// Those behind give way until there are blocks up to `end`. False: they have not enough, and nobody did.
bool Scheduler::make_room(std::size_t index, std::int64_t end) {
  const auto held = static_cast<std::int64_t>(sequences_[index]->place.blocks().size());
  return preempt_behind(index, {.blocks = blocks_for(end) - held - cache_.available_blocks()});
}

// As few as possible give way, from the back of the line; none if all behind `index` would not be enough.
bool Scheduler::preempt_behind(std::size_t index, const Need& need) {
  std::vector<Sequence*> victims;
  std::vector<const cache::Sequence*> places;
  std::int64_t committed = 0;
  for (std::size_t i = sequences_.size(); --i > index;) {
    Sequence& victim = *sequences_[i];
    if (victim.stage != Stage::running || victim.active->request.priority >= need.below_priority) continue;
    victims.push_back(&victim);
    places.push_back(&victim.place);
    if (need.commitments) committed += blocks_lacking(victim);
    if (victims.size() < need.slots || cache_.blocks_freed(places) + committed < need.blocks) continue;
    for (Sequence* one : victims) preempt(*one);
    return true;
  }
  return false;
}

void Scheduler::enter(Sequence& sequence) {
  sequence.stage = Stage::running;
  ++running_;
  if (!sequence.active->started) sequence.active->started = Clock::now();
  if (sequence.active->running_choices++ == 0) ++running_requests_;
}

void Scheduler::leave(Sequence& sequence, Stage stage) {
  sequence.stage = stage;
  --running_;
  if (--sequence.active->running_choices == 0) --running_requests_;
  ++epoch_;
}

// Saving moves the state twice, out now and in again; computing again costs its rows. Without measurements:
// save.
bool Scheduler::cheaper_to_save(const Sequence& sequence) const {
  if (seconds_per_row_ == 0) return true;
  const std::size_t bytes = sequence.place.blocks().size() * options_.block_bytes + options_.slot_bytes;
  return 2 * static_cast<double>(bytes) / options_.copy_bytes_per_second <=
         static_cast<double>(sequence.computed) * seconds_per_row_;
}

void Scheduler::preempt(Sequence& victim) {
  if (cheaper_to_save(victim)) victim.saved = cache_.save(victim.place, victim.computed);
  if (victim.saved) {
    ++statistics_.preempted_saved;
  } else {
    ++statistics_.preempted_dropped;
    statistics_.recomputed_tokens += static_cast<std::uint64_t>(victim.computed);
    victim.place.reset();
    victim.computed = 0;
  }
  victim.drafts.clear();
  victim.confidences.clear();
  victim.gave_way = plans_;
  ++budget_;  // its row
  leave(victim, Stage::waiting);
}

void Scheduler::launched(Step& step) {
  for (const StepPart& part : step.parts) {
    Sequence& sequence = *part.sequence;
    const bool in_prompt = sequence.computed < sequence.prompt_length;
    sequence.computed += part.rows;
    ++sequence.in_flight;
    if (part.sample >= 0) {
      ++sequence.pending;
      sequence.pending_sample = part.sample;
    }
    if (!in_prompt) continue;
    const bool at_end = sequence.computed == sequence.prompt_length;
    if (at_end) sequence.active->prompt_done = true;
    // Snapshots of a prompt's end, and of a finished answer, are named one position before the slot's state:
    // the rings still hold what that position needs, so the same prompt can resume at its last token.
    const std::int64_t position = at_end ? sequence.prompt_length - 1 : sequence.computed;
    const bool snapshot = at_end || position % options_.snapshot_every == 0;
    cache_.publish(sequence.place, sequence.content(), position, snapshot);
    if (snapshot) ++epoch_;
  }
}

bool Scheduler::landed(const StepPart& part) {
  Sequence& sequence = *part.sequence;
  --sequence.in_flight;
  if (part.sample >= 0) --sequence.pending;
  return sequence.stage != Stage::finished;
}

void Scheduler::finish(Sequence& sequence, bool keep) {
  sequence.saved.reset();
  ++finished_;
  // Should the first answer end before its prompt is computed, the others do it themselves.
  if (sequence.choice == 0) sequence.active->prompt_done = true;
  if (sequence.stage != Stage::running) {
    sequence.stage = Stage::finished;
    return;
  }
  // The newest token has no row yet (or one whose result nobody wants).
  const std::int64_t position = std::min(sequence.computed, sequence.known() - 1);
  if (keep && position >= sequence.prompt_length)
    cache_.publish(sequence.place, sequence.content(), position, true);
  sequence.place.reset();
  leave(sequence, Stage::finished);
}

void Scheduler::collect() {
  if (finished_ == 0) return;
  finished_ -= std::erase_if(sequences_, [](const std::unique_ptr<Sequence>& sequence) {
    return sequence->stage == Stage::finished && sequence->in_flight == 0;
  });
}

}  // namespace thalweg::engine
