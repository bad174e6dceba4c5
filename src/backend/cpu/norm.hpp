// RMSNorm: one pass over a row for the statistic, one for the result. Memory-bound: reads and writes each
// value once.
#pragma once

#include "backend/cpu/context.hpp"
#include "checkpoint/weights.hpp"

namespace thalweg::backend::cpu {

/// In place: x[i] = w[i] * x[i] * rsqrt(mean(x^2) + eps) (model specification, section 2).
void rms_norm(float* x, checkpoint::Bf16Vector weight, float eps);

}  // namespace thalweg::backend::cpu
