// The published confidence schedule: how many drafts of each sequence a step verifies.
//
// The number of rows of a step is chosen for the most expected tokens per millisecond, from acceptance
// estimates that are two steps old; who gets the rows is decided by the newest ones. Keeping the two apart is
// what makes the schedule lossless: no confidence that depends on a drafted token decides whether that token
// is verified. Source: DSpark specification, section 6; engine specification, sections 4.4 and 4.5.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculation/step_cost.hpp"

namespace thalweg::engine {

/// What is known of one sequence's drafts. Rates are cumulative: entry j is the estimated probability that
/// drafts 0..j are all accepted, so they do not rise; an empty list means "not known yet".
struct DraftEstimates {
  int drafts = 0;                          ///< drafts that could be verified
  std::vector<float> rates = {};           ///< of the newest step whose confidences have arrived
  std::vector<float> previous_rates = {};  ///< of the step before that
  std::int64_t scheduled = 0;              ///< decode steps launched for the sequence
  std::int64_t processed = 0;              ///< of those, steps whose results have arrived
  bool has_proposals = false;              ///< drafts exist although no rates do
};

/// Rows (1 + verified drafts) of each sequence, in input order.
struct VerifyPlan {
  std::vector<int> rows;
  int total = 0;
};

/// The whole batch's rows. Throws InputError if a sequence's counters or list lengths contradict each other,
/// or if the curve ends below one row a sequence. An empty curve verifies every draft.
VerifyPlan plan_verification(const StepCost& cost, std::span<const DraftEstimates> sequences);

/// Spreads `total_rows`, fixed earlier, by the newest confidences: a row for everyone, the rest to the
/// largest cumulative products (float, left to right), ties to the lower sequence, then the earlier draft.
/// `confidences` is [previous sequences, drafts]; sequence i's row in it is `row_of[i]`, or -1: none, its
/// products are zero. Throws InputError if the total does not lie between 1 and 1 + drafts rows a sequence,
/// or a row does not exist.
std::vector<int> distribute_rows(int total_rows, int drafts, std::span<const int> row_of,
                                 std::span<const float> confidences);

}  // namespace thalweg::engine
