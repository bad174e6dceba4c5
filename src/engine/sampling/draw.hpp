// The draw itself: argmax of logit / temperature + Gumbel noise.
#pragma once

#include <cstdint>
#include <span>

#include "engine/sampling/filters.hpp"
#include "engine/sampling/row_scan.hpp"

namespace thalweg::engine {

/// The token kept by `cut` with the largest score logit / temperature + gumbel_noise(seed, position, token),
/// computed in double, ties to the lower id. `largest` is the row's largest logit (finite). Tokens whose
/// score cannot reach the best one so far are skipped by bounds on the noise, which changes nothing in the
/// result.
std::int32_t draw_token(std::span<const float> logits, LargestLogit largest, double temperature,
                        FilterCut cut, std::uint64_t seed, std::int64_t position);

}  // namespace thalweg::engine
