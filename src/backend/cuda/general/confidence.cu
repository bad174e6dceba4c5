// Roofline: two short rows are read; the launch costs more.
#include "backend/cuda/general/kernels.hpp"
#include "backend/cuda/general/values.cuh"

namespace thalweg::cuda::general {
namespace {

constexpr int kThreads = 256;

// w . [collapsed state ; Markov embedding] for one position of every block.
__global__ void __launch_bounds__(kThreads)
    confidence_kernel(const std::uint16_t* weight, const float* collapsed, int width, const float* markov,
                      int rank, int block, int step, float* out) {
  const float* state = collapsed + (static_cast<std::size_t>(blockIdx.x) * block + step) * width;
  const float* embedding = markov + static_cast<std::size_t>(blockIdx.x) * rank;
  float sum = 0.0f;
  for (int d = threadIdx.x; d < width; d += kThreads) sum += bf16_value(weight[d]) * state[d];
  for (int d = threadIdx.x; d < rank; d += kThreads) sum += bf16_value(weight[width + d]) * embedding[d];
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x * block + step] = sum;
}

}  // namespace

void draft_confidence(const std::uint16_t* weight, const Rows& collapsed, const Rows& markov, int block,
                      int step, float* out) {
  if (markov.rows() == 0) return;
  confidence_kernel<<<static_cast<unsigned>(markov.rows()), kThreads>>>(
      weight, collapsed.data(), static_cast<int>(collapsed.width()), markov.data(),
      static_cast<int>(markov.width()), block, step, out);
  check(cudaGetLastError(), "draft confidence");
}

}  // namespace thalweg::cuda::general
