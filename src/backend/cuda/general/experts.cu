// Roofline: at few rows the weights of the chosen experts are read once; at many rows see linear.cu.
#include "backend/cuda/general/kernels.hpp"
#include "backend/cuda/general/values.cuh"

namespace thalweg::cuda::general {
namespace {

constexpr int kThreads = 256;

__global__ void count_kernel(const std::int32_t* chosen, std::size_t places, std::int32_t* counts) {
  const std::size_t item = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item < places) atomicAdd(&counts[chosen[item]], 1);
}

// Counts -> first places; `next` is a copy that the placing advances. One thread: experts are few.
__global__ void starts_kernel(const std::int32_t* counts, int experts, std::int32_t* starts,
                              std::int32_t* next) {
  std::int32_t sum = 0;
  for (int e = 0; e < experts; ++e) {
    const std::int32_t count = counts[e];
    starts[e] = sum;
    next[e] = sum;
    sum += count;
  }
  starts[experts] = sum;
}

// The order within an expert is that of arrival: no row's result depends on its place.
__global__ void place_kernel(const std::int32_t* chosen, std::size_t places, int count, std::int32_t* next,
                             std::int32_t* pairs, std::int32_t* sources, std::int32_t* place_of) {
  const std::size_t item = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= places) return;
  const std::int32_t place = atomicAdd(&next[chosen[item]], 1);
  pairs[place] = static_cast<std::int32_t>(item);
  sources[place] = static_cast<std::int32_t>(item / count);
  place_of[item] = place;
}

// gate <- weight * silu(min(gate, limit)) * clamp(up, -limit, limit).
__global__ void swiglu_kernel(float* gate, const float* up, std::size_t count, std::size_t width, float limit,
                              const std::int32_t* pairs, const float* weights) {
  const std::size_t item = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= count) return;
  const float weight = pairs != nullptr ? weights[pairs[item / width]] : 1.0f;
  const float a = fminf(gate[item], limit);
  const float b = fminf(fmaxf(up[item], -limit), limit);
  gate[item] = weight * (a / (1.0f + expf(-a))) * b;
}

// o holds the shared expert; the routed ones are added in the order of their choice.
__global__ void combine_kernel(const float* down, const std::int32_t* place_of, int count, std::size_t rows,
                               std::size_t width, float* o) {
  const std::size_t item = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= rows * width) return;
  const std::size_t row = item / width;
  float sum = o[item];
  for (int k = 0; k < count; ++k) sum += down[place_of[row * count + k] * width + item % width];
  o[item] = sum;
}

}  // namespace

void group_by_expert(const std::int32_t* chosen, std::size_t places, int count, int experts,
                     std::int32_t* scratch, const ExpertGroups& groups) {
  std::int32_t* next = scratch + experts;
  check(cudaMemsetAsync(scratch, 0, experts * sizeof(std::int32_t)), "clear counts");
  const unsigned blocks = blocks_for(places, kThreads);
  count_kernel<<<blocks, kThreads>>>(chosen, places, scratch);
  starts_kernel<<<1, 1>>>(scratch, experts, groups.starts, next);
  place_kernel<<<blocks, kThreads>>>(chosen, places, count, next, groups.pairs, groups.sources,
                                     groups.place_of);
  check(cudaGetLastError(), "group rows by expert");
}

void swiglu_rows(const Rows& gate, const Rows& up, float limit, const std::int32_t* pairs,
                 const float* weights) {
  if (gate.size() == 0) return;
  swiglu_kernel<<<blocks_for(gate.size(), kThreads), kThreads>>>(gate.data(), up.data(), gate.size(),
                                                                 gate.width(), limit, pairs, weights);
  check(cudaGetLastError(), "activation");
}

void add_experts(const Rows& down, const std::int32_t* place_of, int count, const Rows& o) {
  combine_kernel<<<blocks_for(o.size(), kThreads), kThreads>>>(down.data(), place_of, count, o.rows(),
                                                               o.width(), o.data());
  check(cudaGetLastError(), "combine experts");
}

}  // namespace thalweg::cuda::general
