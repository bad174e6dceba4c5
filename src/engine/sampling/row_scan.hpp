// The largest logit of a row.
#pragma once

#include <cstdint>
#include <span>

namespace thalweg::engine {

struct LargestLogit {
  float logit = 0;
  std::int32_t token = 0;
};

/// The largest logit and the lowest id that has it; -inf if all are. Throws WorkError, naming the token, if a
/// logit is NaN or +inf: the model's computation went wrong and no token would mean anything. `logits` must
/// not be empty.
LargestLogit find_largest(std::span<const float> logits);

}  // namespace thalweg::engine
