// Rotary embedding frequencies (model specification, section 3.1).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "checkpoint/config.hpp"

namespace thalweg::model {

/// Frequencies of the two kinds of layers, rope_head_dim / 2 each.
struct RopeFrequencies {
  std::vector<float> plain;       ///< window-only layers and the draft
  std::vector<float> compressed;  ///< layers with compressed KV: own base, YaRN at every length
};

RopeFrequencies rope_frequencies(const checkpoint::ModelConfig& config);

/// Angle of a position: the product is rounded to float32, as the released code computes it.
inline float rope_angle(std::int64_t position, float frequency) {
  return static_cast<float>(position) * frequency;
}

}  // namespace thalweg::model
