// Router. Roofline: 1.5 kB a row; the launch costs more. A warp has a row, its scores in registers; each
// round takes the largest over the lanes, ties to the lower id.
#include "backend/cuda/device.hpp"
#include "backend/cuda/router.hpp"

namespace thalweg::cuda {
namespace {

constexpr int warps = 4;
constexpr int lane_experts = 16;

__device__ __forceinline__ float softplus(float z) {
  return z > 20.0f ? z : log1pf(expf(z));
}

__global__ void __launch_bounds__(32 * warps)
    route_kernel(const __grid_constant__ RouterInput input, int* ids, float* weights) {
  const int row = blockIdx.x * warps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= input.rows) return;
  const bool image = input.image != nullptr && input.image[row] != 0;
  const float* bias = image ? input.image_bias : input.bias;
  float scores[lane_experts];
  float keys[lane_experts];  // -infinity once chosen or beyond the experts
#pragma unroll
  for (int i = 0; i < lane_experts; ++i) {
    const int expert = i * 32 + lane;
    scores[i] = 0.0f;
    keys[i] = -INFINITY;
    if (expert < input.experts) {
      scores[i] = sqrtf(softplus(input.logits[static_cast<std::size_t>(row) * input.experts + expert]));
      keys[i] = scores[i] + bias[expert];
    }
  }
  float sum = 0.0f;
  int my_id = 0;
  float my_score = 0.0f;
  for (int round = 0; round < input.chosen; ++round) {
    float best = -INFINITY;
    int best_id = 1 << 30;
    float best_score = 0.0f;
#pragma unroll
    for (int i = 0; i < lane_experts; ++i) {
      if (keys[i] > best) {
        best = keys[i];
        best_id = i * 32 + lane;
        best_score = scores[i];
      }
    }
#pragma unroll
    for (int bit = 16; bit > 0; bit /= 2) {
      const float other = __shfl_xor_sync(0xFFFFFFFFu, best, bit);
      const int other_id = __shfl_xor_sync(0xFFFFFFFFu, best_id, bit);
      const float other_score = __shfl_xor_sync(0xFFFFFFFFu, best_score, bit);
      if (other > best || (other == best && other_id < best_id)) {
        best = other;
        best_id = other_id;
        best_score = other_score;
      }
    }
#pragma unroll
    for (int i = 0; i < lane_experts; ++i) {
      if (i * 32 + lane == best_id) keys[i] = -INFINITY;
    }
    sum += best_score;
    if (lane == round) {
      my_id = best_id;
      my_score = best_score;
    }
  }
  if (lane < input.chosen) {
    ids[row * input.chosen + lane] = my_id;
    weights[row * input.chosen + lane] = my_score / (sum + 1e-20f) * input.scaling;
  }
}

}  // namespace

void route(const RouterInput& input, int* ids, float* weights, cudaStream_t stream) {
  route_kernel<<<(input.rows + warps - 1) / warps, 32 * warps, 0, stream>>>(input, ids, weights);
  check(cudaGetLastError(), "route");
}

}  // namespace thalweg::cuda
