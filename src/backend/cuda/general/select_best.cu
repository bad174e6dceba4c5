// Roofline: five passes over a row's scores, which the second-level cache holds. A block has a row: four
// rounds of counting find the k-th largest key byte by byte, then one pass writes what is above it and, of
// its equals, the first ones.
#include "backend/cuda/general/kernels.hpp"
#include "backend/cuda/general/values.cuh"

namespace thalweg::cuda::general {
namespace {

constexpr int kThreads = 256;

// Larger scores have larger keys; -0 and +0 are equal.
__device__ __forceinline__ std::uint32_t order_key(float score) {
  const std::uint32_t bits = __float_as_uint(score + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

struct Threshold {
  std::uint32_t key;  // of the k-th largest
  int equals;         // how many of its equals are taken
};

__device__ Threshold find_threshold(const float* scores, int count, int k) {
  __shared__ int bins[256];
  __shared__ Threshold state;
  if (threadIdx.x == 0) state = {0, k};
  for (int shift = 24; shift >= 0; shift -= 8) {
    bins[threadIdx.x] = 0;
    __syncthreads();
    const std::uint32_t prefix = state.key;
    for (int i = threadIdx.x; i < count; i += kThreads) {
      const std::uint32_t key = order_key(scores[i]);
      // Shifted in two steps: by 32 at once is not defined.
      if ((key >> shift >> 8) == (prefix >> shift >> 8)) atomicAdd(&bins[key >> shift & 255], 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int left = state.equals;
      int digit = 255;
      while (digit > 0 && bins[digit] < left) left -= bins[digit--];
      state = {prefix | static_cast<std::uint32_t>(digit) << shift, left};
    }
    __syncthreads();
  }
  return state;
}

// How many threads before this one in the block have the flag; `total` over the block.
__device__ int count_before(bool flag, int* parts, int& total) {
  const unsigned ballot = __ballot_sync(0xFFFFFFFFu, flag);
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  if (lane == 0) parts[warp] = __popc(ballot);
  __syncthreads();
  int before = __popc(ballot & ((1u << lane) - 1));
  total = 0;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w < warp) before += parts[w];
    total += parts[w];
  }
  __syncthreads();
  return before;
}

__global__ void __launch_bounds__(kThreads)
    select_kernel(const float* scores, std::size_t stride, const std::int32_t* counts, int k,
                  std::int32_t* out, std::int32_t* found) {
  __shared__ int parts[kThreads / 32];
  const std::size_t row = blockIdx.x;
  const float* x = scores + row * stride;
  std::int32_t* places = out + row * k;
  const int count = counts[row];
  if (threadIdx.x == 0) found[row] = min(count, k);
  if (count <= k) {
    for (int i = threadIdx.x; i < count; i += kThreads) places[i] = i;
    return;
  }
  const Threshold threshold = find_threshold(x, count, k);
  int written = 0;
  int equals = 0;
  for (int first = 0; first < count; first += kThreads) {
    const int i = first + static_cast<int>(threadIdx.x);
    const std::uint32_t key = i < count ? order_key(x[i]) : 0;
    const bool equal = i < count && key == threshold.key;
    int total = 0;
    const int rank = equals + count_before(equal, parts, total);
    equals += total;
    const bool taken = i < count && (key > threshold.key || (equal && rank < threshold.equals));
    const int place = written + count_before(taken, parts, total);
    written += total;
    if (taken) places[place] = i;
  }
}

}  // namespace

void select_best(const float* scores, std::size_t rows, std::size_t stride, const std::int32_t* counts, int k,
                 std::int32_t* out, std::int32_t* found) {
  if (rows == 0) return;
  select_kernel<<<static_cast<unsigned>(rows), kThreads>>>(scores, stride, counts, k, out, found);
  check(cudaGetLastError(), "select");
}

}  // namespace thalweg::cuda::general
