#include "backend/cpu/norm.hpp"

#include <cmath>

namespace thalweg::backend::cpu {

void rms_norm(float* x, checkpoint::Bf16Vector weight, float eps) {
  const std::size_t n = weight.size();
  const float scale = 1.0F / std::sqrt(sum_of_squares(x, n) / static_cast<float>(n) + eps);
  for (std::size_t i = 0; i < n; ++i) x[i] = numeric::from_bf16(weight[i]) * (x[i] * scale);
}

}  // namespace thalweg::backend::cpu
