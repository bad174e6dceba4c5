// Offline batches: one request a line in, one result a line out, in the same order, resumable.
#pragma once

#include <string>

#include "app/generation.hpp"

namespace thalweg::app {

struct BatchFiles {
  std::string in;
  std::string out;  ///< empty: standard output
};

/// Runs every line of the batch. A line that is not a valid request gets a result line with "error"; the
/// others are not affected. If `out` exists, its whole lines count as done, a torn last line is written
/// again. Throws InputError if `out` does not belong to `in`, WorkError if writing fails.
void run_batch(const BatchFiles& files, const SamplingOptions& defaults, const engine::LoadedModel& model,
               engine::Engine& engine);

}  // namespace thalweg::app
