// Roofline: three thin products with bf16 weights a row; the rest passes over their results once.
#include "backend/cuda/general/cache_rows.cuh"
#include "backend/cuda/general/kernels.hpp"

namespace thalweg::cuda::general {
namespace {

constexpr int kThreads = 128;

// Channel-wise softmax over the two tokens of a group; the first may have come in an earlier step.
__global__ void __launch_bounds__(kThreads)
    pool_kernel(const __grid_constant__ RawRings rings, const Entry* entries, const float* values,
                const float* scores, int width, float* latents) {
  const Entry entry = entries[blockIdx.x];
  const std::size_t at = static_cast<std::size_t>(entry.row) * width;
  const bool here = entry.row > entry.first;
  const float* raw = raw_record(rings, entry.slot, entry.index * 2);
  const float* score0 = here ? scores + at - width : raw;
  const float* value0 = here ? values + at - width : raw + width;
  for (int d = threadIdx.x; d < width; d += kThreads) {
    const float score1 = scores[at + d];
    const float largest = fmaxf(score0[d], score1);
    const float e0 = expf(score0[d] - largest);
    const float e1 = expf(score1 - largest);
    latents[static_cast<std::size_t>(blockIdx.x) * width + d] =
        e0 / (e0 + e1) * value0[d] + e1 / (e0 + e1) * values[at + d];
  }
}

__global__ void __launch_bounds__(kThreads)
    take_kernel(const Entry* entries, const float* values, int width, float* latents) {
  const std::size_t from = static_cast<std::size_t>(entries[blockIdx.x].row) * width;
  const std::size_t to = static_cast<std::size_t>(blockIdx.x) * width;
  for (int d = threadIdx.x; d < width; d += kThreads) latents[to + d] = values[from + d];
}

__global__ void __launch_bounds__(kThreads)
    keep_raw_kernel(const __grid_constant__ RawRings rings, const StepRow* rows, const float* values,
                    const float* scores, int width) {
  const StepRow row = rows[blockIdx.x];
  if (static_cast<int>(blockIdx.x) - row.range_first < row.range_count - rings.tokens) return;
  float* raw = raw_record(rings, row.slot, row.position);
  const std::size_t at = static_cast<std::size_t>(blockIdx.x) * width;
  for (int d = threadIdx.x; d < width; d += kThreads) {
    raw[d] = scores[at + d];
    raw[width + d] = values[at + d];
  }
}

}  // namespace

void pool_pairs(const RawRings& rings, const Entry* entries, std::size_t count, const Rows& values,
                const Rows& scores, float* latents) {
  if (count == 0) return;
  pool_kernel<<<static_cast<unsigned>(count), kThreads>>>(rings, entries, values.data(), scores.data(),
                                                          static_cast<int>(values.width()), latents);
  check(cudaGetLastError(), "compressor");
}

void take_entries(const Entry* entries, std::size_t count, const Rows& values, float* latents) {
  if (count == 0) return;
  take_kernel<<<static_cast<unsigned>(count), kThreads>>>(entries, values.data(),
                                                          static_cast<int>(values.width()), latents);
  check(cudaGetLastError(), "compressor");
}

void keep_raw(const RawRings& rings, const StepRow* rows, const Rows& values, const Rows& scores) {
  if (values.rows() == 0) return;
  keep_raw_kernel<<<static_cast<unsigned>(values.rows()), kThreads>>>(
      rings, rows, values.data(), scores.data(), static_cast<int>(values.width()));
  check(cudaGetLastError(), "compressor rings");
}

}  // namespace thalweg::cuda::general
