// Roofline: heads x width multiply-adds for a row and entry; keys are read once a row, unpacked in registers.
#include "backend/cuda/general/cache_rows.cuh"
#include "backend/cuda/general/kernels.hpp"

namespace thalweg::cuda::general {
namespace {

constexpr int warps = 4;
constexpr int tile = 64;                                     // entries of a block
constexpr int kLaneValues = 16;                              // values of a key a lane holds

__device__ __forceinline__ std::int64_t entry_at(const ScoreInput& in, std::size_t row, int place) {
  if (in.candidates == nullptr || in.candidate_counts[row] == 0) return place;
  const std::int32_t* blocks = in.candidates + row * in.candidate_stride;
  return static_cast<std::int64_t>(blocks[place / in.candidate_size]) * in.candidate_size +
         place % in.candidate_size;
}

// A block has a row and a tile of its entries; a warp an entry at a time, against all heads in order.
__global__ void __launch_bounds__(32 * warps)
    score_kernel(const __grid_constant__ ScoreInput in, std::size_t first_row, std::size_t stride,
                 float* scores) {
  const std::size_t row = first_row + blockIdx.y;
  const int count = in.scored[row];
  const int width = in.keys.width;
  const int lane = threadIdx.x % 32;
  const StepRow r = in.rows[row];
  const int end = min(count, (static_cast<int>(blockIdx.x) + 1) * tile);
  for (int place = blockIdx.x * tile + threadIdx.x / 32; place < end; place += warps) {
    const Record record = page_record(in.keys, in.blocks + r.blocks, entry_at(in, row, place));
    float key[kLaneValues];
#pragma unroll
    for (int i = 0; i < kLaneValues; ++i) {
      const int d = i * 32 + lane;
      key[i] = d < width ? stored_value(in.keys.format, record.codes, record.scales, d) : 0.0f;
    }
    float score = 0.0f;
    for (int head = 0; head < in.heads; ++head) {
      const float* query = in.queries + (row * in.heads + head) * width;
      float dot = 0.0f;
#pragma unroll
      for (int i = 0; i < kLaneValues; ++i) {
        const int d = i * 32 + lane;
        if (d < width) dot = fmaf(query[d], key[i], dot);
      }
      score += in.head_weights[row * in.heads + head] * fmaxf(0.0f, warp_sum(dot));
    }
    if (lane == 0) scores[blockIdx.y * stride + place] = score;
  }
}

__global__ void scale_kernel(float* values, std::size_t count, float scale) {
  const std::size_t item = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item < count) values[item] *= scale;
}

// The largest score of every block of entries; the newest block counts as the largest of all.
__global__ void maxima_kernel(const float* scores, std::size_t stride, const std::int32_t* scored, int size,
                              const std::int32_t* blocks, std::size_t blocks_stride, float* maxima) {
  const std::size_t row = blockIdx.y;
  const int block = blockIdx.x * blockDim.x + threadIdx.x;
  if (block >= blocks[row]) return;
  float largest = -INFINITY;
  for (int i = block * size; i < min((block + 1) * size, scored[row]); ++i) {
    largest = fmaxf(largest, scores[row * stride + i]);
  }
  maxima[row * blocks_stride + block] = block + 1 == blocks[row] ? INFINITY : largest;
}

// Places among the scored entries -> entries.
__global__ void entries_kernel(const __grid_constant__ ScoreInput in, std::size_t first_row, int topk,
                               const std::int32_t* counts, std::int32_t* entries) {
  const std::size_t row = first_row + blockIdx.x;
  for (int i = threadIdx.x; i < counts[row]; i += blockDim.x) {
    std::int32_t& entry = entries[row * topk + i];
    entry = static_cast<std::int32_t>(entry_at(in, row, entry));
  }
}

}  // namespace

void score_entries(const ScoreInput& input, std::size_t first, std::size_t count, std::size_t stride,
                   float* scores) {
  score_kernel<<<dim3(blocks_for(stride, tile), static_cast<unsigned>(count)), 32 * warps>>>(input, first,
                                                                                            stride, scores);
  check(cudaGetLastError(), "index scores");
}

void scale_values(const Rows& rows, float scale) {
  if (rows.size() == 0) return;
  scale_kernel<<<blocks_for(rows.size(), 256), 256>>>(rows.data(), rows.size(), scale);
  check(cudaGetLastError(), "scale");
}

void block_maxima(const float* scores, std::size_t rows, std::size_t stride, const std::int32_t* scored,
                  int size, const std::int32_t* blocks, std::size_t blocks_stride, float* maxima) {
  maxima_kernel<<<dim3(blocks_for(blocks_stride, 128), static_cast<unsigned>(rows)), 128>>>(
      scores, stride, scored, size, blocks, blocks_stride, maxima);
  check(cudaGetLastError(), "block maxima");
}

void places_to_entries(const ScoreInput& input, std::size_t first, std::size_t count, int topk,
                       const std::int32_t* counts, std::int32_t* entries) {
  entries_kernel<<<static_cast<unsigned>(count), 128>>>(input, first, topk, counts, entries);
  check(cudaGetLastError(), "selected entries");
}

}  // namespace thalweg::cuda::general
