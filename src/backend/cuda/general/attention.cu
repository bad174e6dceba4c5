// Roofline: 2 * heads * width multiply-adds for a key, twice; float32 units and the second-level cache bound
// it. The packed kernel of the folder above is the fast one, for released shapes.
#include "backend/cuda/general/attention.hpp"
#include "backend/cuda/general/cache_rows.cuh"

#include <algorithm>

namespace thalweg::cuda::general {
namespace {

constexpr int warps = 4;
constexpr int block_heads = 4;
constexpr std::size_t kKeyBudget = std::size_t{64} << 20;  // floats of unpacked keys at once

struct Span {
  std::int64_t first;  // first window position
  int window;          // window keys
  int keys;            // window keys and selected entries
};

__device__ __forceinline__ Span span_of(const AttentionInput& in, std::size_t row) {
  const StepRow r = in.rows[row];
  const std::int64_t floor = in.decoder ? r.decoder_floor : r.encoder_floor;
  std::int64_t first = 0;
  std::int64_t last = r.position;
  if (in.draft_block) {
    first = r.range_position - in.window;
    last = r.range_position + r.range_count - 1;
  } else {
    first = last - in.window + 1;
  }
  first = max(max(first, floor), std::int64_t{0});
  const int window = static_cast<int>(last - first + 1);
  return {first, window, window + (in.compressed ? in.selection.counts[row] : 0)};
}

// A warp unpacks a key of a row.
__global__ void __launch_bounds__(32 * warps)
    unpack_kernel(const __grid_constant__ AttentionInput in, std::size_t first_row, int most, float* keys) {
  const int key = blockIdx.x * warps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const std::size_t row = first_row + blockIdx.y;
  const Span span = span_of(in, row);
  if (key >= span.keys) return;
  const StepRow r = in.rows[row];
  const int width = in.rings.width;
  float* out = keys + (static_cast<std::size_t>(blockIdx.y) * most + key) * width;
  const std::int64_t position = span.first + key;
  if (key < span.window && position >= r.range_position) {
    const float* x = in.fresh + (r.range_first + (position - r.range_position)) * width;
    for (int d = lane; d < width; d += 32) out[d] = x[d];
    return;
  }
  Record record{};
  numeric::RowFormat format = in.rings.format;
  if (key < span.window) {
    record = window_record(in.rings, r.slot, position);
  } else {
    const std::int32_t entry = in.selection.entries[row * in.selection.topk + (key - span.window)];
    record = page_record(in.entries, in.blocks + r.blocks, entry);
    format = in.entries.format;
  }
  for (int d = lane; d < width; d += 32) out[d] = stored_value(format, record.codes, record.scales, d);
}

// A block has four heads of a row. Scores: a warp a key; softmax: a warp a head; sums: a thread a channel,
// keys in ascending order.
__global__ void __launch_bounds__(32 * warps)
    attend_kernel(const __grid_constant__ AttentionInput in, std::size_t first_row, int most,
                  const float* keys, float scale, float* o) {
  extern __shared__ float shared[];
  const int width = in.rings.width;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  float* q = shared;                          // [block_heads, width]
  float* weights = shared + block_heads * width;  // [block_heads, most]
  float* denominators = weights + block_heads * most;
  const std::size_t row = first_row + blockIdx.x;
  const int head = blockIdx.y * block_heads;
  const int heads = min(block_heads, in.heads - head);
  const int count = span_of(in, row).keys;
  const std::size_t at = (row * in.heads + head) * width;
  for (int i = threadIdx.x; i < block_heads * width; i += 32 * warps) {
    q[i] = i < heads * width ? in.q[at + i] : 0.0f;
  }
  __syncthreads();
  const float* rows = keys + static_cast<std::size_t>(blockIdx.x) * most * width;
  for (int key = warp; key < count; key += warps) {
    float dots[block_heads] = {};
    for (int d = lane; d < width; d += 32) {
      const float value = rows[static_cast<std::size_t>(key) * width + d];
#pragma unroll
      for (int h = 0; h < block_heads; ++h) dots[h] = fmaf(q[h * width + d], value, dots[h]);
    }
#pragma unroll
    for (int h = 0; h < block_heads; ++h) {
      const float dot = warp_sum(dots[h]);
      if (lane == 0) weights[h * most + key] = dot * scale;
    }
  }
  __syncthreads();
  if (warp < heads) {
    float* w = weights + warp * most;
    float largest = -1e30f;
    for (int k = lane; k < count; k += 32) largest = fmaxf(largest, w[k]);
    largest = warp_max(largest);
    float sum = 0.0f;
    for (int k = lane; k < count; k += 32) {
      w[k] = expf(w[k] - largest);
      sum += w[k];
    }
    sum = warp_sum(sum);
    if (lane == 0) denominators[warp] = sum + expf(in.sinks[head + warp] - largest);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < width; d += 32 * warps) {
    float sums[block_heads] = {};
    for (int k = 0; k < count; ++k) {
      const float value = rows[static_cast<std::size_t>(k) * width + d];
#pragma unroll
      for (int h = 0; h < block_heads; ++h) {
        if (h < heads) sums[h] = fmaf(weights[h * most + k], value, sums[h]);
      }
    }
    for (int h = 0; h < heads; ++h) o[at + static_cast<std::size_t>(h) * width + d] = sums[h] / denominators[h];
  }
}

}  // namespace

void Attention::run(const AttentionInput& in, float* o) {
  if (in.row_count == 0) return;
  const auto width = static_cast<std::size_t>(in.rings.width);
  const std::size_t most = static_cast<std::size_t>(in.window) +
                           static_cast<std::size_t>(in.draft_block ? in.most_in_range : 0) +
                           static_cast<std::size_t>(in.compressed ? in.selection.topk : 0);
  // Not more than a grid's second dimension takes.
  const std::size_t pass =
      std::clamp<std::size_t>(kKeyBudget / (most * width), 1, std::min<std::size_t>(in.row_count, 32768));
  float* keys = keys_.reserve(pass * most * width);
  const std::size_t bytes = (block_heads * (width + most) + block_heads) * sizeof(float);
  check(cudaFuncSetAttribute(attend_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        "shared memory of attention");
  const float scale = 1.0f / std::sqrt(static_cast<float>(width));
  for (std::size_t first = 0; first < in.row_count; first += pass) {
    const auto count = static_cast<unsigned>(std::min(pass, in.row_count - first));
    unpack_kernel<<<dim3(blocks_for(most, warps), count), 32 * warps>>>(in, first, static_cast<int>(most), keys);
    check(cudaGetLastError(), "unpack keys");
    attend_kernel<<<dim3(count, blocks_for(in.heads, block_heads)), 32 * warps, bytes>>>(
        in, first, static_cast<int>(most), keys, scale, o);
    check(cudaGetLastError(), "attention");
  }
}

}  // namespace thalweg::cuda::general
