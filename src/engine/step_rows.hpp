// Writes the rows of a sequence, and what is to be drawn from them, into a step.
#pragma once

#include "engine/sequence.hpp"
#include "engine/step.hpp"

namespace thalweg::engine {

/// Appends rows for the next `rows` positions, which have blocks. Where they reach the newest token, the next
/// token is drawn from its row (and from those of the drafts verified after it); log-probabilities of the
/// prompt's tokens are asked for once each.
void add_rows(Sequence& sequence, std::int32_t rows, std::int32_t lookback, Step& step);

}  // namespace thalweg::engine
