// Index scores: 32 heads x 128 against every key of a sequence, or against blocks of candidates.
//
// Roofline: 68 bytes a key from HBM (131072 keys: 1.9 us a sequence), 8.2 kFLOP a key and token on the bf16
// matrix unit: memory for one or two tokens a sequence, the matrix unit beyond. Keys are the instruction's
// 64-row side, widened once in registers (Fp4Codec) and used for all tokens of the row; the 32 heads of a
// token are its columns. What bounds the kernel at one token is instructions: 150 to widen 64 keys, 60 to
// weigh and sum the heads.
#include <cuda_runtime.h>

#include <algorithm>

#include "backend/cuda/codec.cuh"
#include "backend/cuda/device.hpp"
#include "backend/cuda/indexer.hpp"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/wgmma.cuh"

namespace thalweg::cuda {
namespace {

constexpr int stage_keys = 128;  // 64 for each of two warpgroups
constexpr int stage_units = stage_keys / index_unit_keys;
constexpr int stage_bytes = stage_units * index_unit_bytes;
constexpr int job_keys = 4096;
constexpr int query_bytes = index_heads * index_width * 2;

template <int max_tokens>
struct IndexConfig {
  static constexpr int threads = 288;
  static constexpr int blocks_an_sm = 2;
  static constexpr int stages = max_tokens == 1 ? 10 : 5;
};

template <int max_tokens>
struct IndexShared {
  std::uint8_t queries[max_tokens][query_bytes];
  std::uint8_t keys[IndexConfig<max_tokens>::stages][stage_bytes];
  float weights[max_tokens][index_heads];
  alignas(8) std::uint64_t full[IndexConfig<max_tokens>::stages];
  alignas(8) std::uint64_t empty[IndexConfig<max_tokens>::stages];
};

struct IndexJob {
  IndexRow row;
  int first_key;
  int end_key;

  __device__ int stages() const { return (end_key - first_key + stage_keys - 1) / stage_keys; }
};

__device__ IndexJob index_job(const IndexInput& input, int index, int jobs_a_row) {
  const IndexRow row = input.rows[index / jobs_a_row];
  const int first = index % jobs_a_row * job_keys;
  return {row, first, min(first + job_keys, row.keys)};
}

// Where unit `unit` (8 keys) of a row lies.
__device__ const std::uint8_t* unit_address(const IndexInput& input, const IndexRow& row, int unit) {
  if (input.candidates != nullptr) {
    unit = input.candidates[static_cast<std::size_t>(row.first_token) * input.candidate_stride + unit];
  }
  const int units_a_page = input.keys.page_keys / index_unit_keys;
  const int page = input.keys.tables[row.sequence * input.keys.table_stride + unit / units_a_page];
  return input.keys.base + page * input.keys.page_stride +
         static_cast<std::size_t>(unit % units_a_page) * index_unit_bytes;
}

// The loading warp. A copy takes 8 units that lie together in a page, or one candidate; the lanes find the
// addresses of several stages at a time, because that takes longer than a stage.
template <int max_tokens>
__device__ void load_keys(const IndexInput& input, const IndexJob& job, IndexShared<max_tokens>& shared,
                          std::uint32_t& phases) {
  int stage = 0;
  const int lane = threadIdx.x % 32;
  const int span = input.candidates != nullptr ? 1 : 8;
  const int stage_copies = stage_units / span;
  const int batch = 32 / stage_copies;  // stages
  const int end_unit = (job.end_key + index_unit_keys - 1) / index_unit_keys;
  const int count = job.stages();
  for (int first = 0; first < count; first += batch) {
    const int unit = job.first_key / index_unit_keys + first * stage_units + lane * span;
    const bool exists = unit < end_unit;
    const std::uint8_t* source = exists ? unit_address(input, job.row, unit) : nullptr;
    const std::uint32_t copies = __popc(__ballot_sync(0xFFFFFFFFu, exists));
    for (int i = 0; i < batch && first + i < count; ++i) {
      const std::uint32_t full = ptx::shared_address(&shared.full[stage]);
      const int mine = lane - i * stage_copies;
      ptx::barrier_wait(ptx::shared_address(&shared.empty[stage]), ~phases >> stage & 1);
      phases ^= 1u << stage;
      if (lane == 0) {
        ptx::barrier_expect(full, min(copies - i * stage_copies, stage_copies) * span * index_unit_bytes);
      }
      __syncwarp();
      if (exists && mine >= 0 && mine < stage_copies) {
        ptx::bulk_load_once(ptx::shared_address(shared.keys[stage]) + mine * span * index_unit_bytes, source,
                            span * index_unit_bytes, full);
      }
      stage = stage + 1 == IndexConfig<max_tokens>::stages ? 0 : stage + 1;
    }
  }
}

// The registers of 64 keys: units 2w and 2w + 1 of the warpgroup's eight are the rows of warp w.
__device__ __forceinline__ void widen_keys(const std::uint8_t* units, int warp, int lane,
                                           std::uint32_t (&a)[2][16]) {
  const std::uint8_t* low = units + 2 * warp * index_unit_bytes;
  const std::uint8_t* high = low + index_unit_bytes;
  const std::uint32_t low_scales = *reinterpret_cast<const std::uint32_t*>(low + 512 + lane / 4 * 4);
  const std::uint32_t high_scales = *reinterpret_cast<const std::uint32_t*>(high + 512 + lane / 4 * 4);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint2 low_words = *reinterpret_cast<const uint2*>(low + half * 256 + lane * 8);
    const uint2 high_words = *reinterpret_cast<const uint2*>(high + half * 256 + lane * 8);
    Fp4Codec::widen_row(low_words.x, low_words.y, scale_pair<126>(low_scales, 2 * half),
                        scale_pair<126>(low_scales, 2 * half + 1), a[half]);
    Fp4Codec::widen_row(high_words.x, high_words.y, scale_pair<126>(high_scales, 2 * half),
                        scale_pair<126>(high_scales, 2 * half + 1), a[half] + 1);
  }
}

// 2 max(0, x): an addition instead of a comparison, which has half the rate. The weights are halved; both are
// exact.
__device__ __forceinline__ float twice_positive(float x) {
  return x + fabsf(x);
}

// Weighs and sums the heads of one token (`weights` are halved); all lanes of a quad get the sums of keys g
// and g + 8.
__device__ __forceinline__ float2 sum_heads(const float (&d)[16], const float* weights, int lane) {
  float2 sum = make_float2(0.0f, 0.0f);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float2 weight = *reinterpret_cast<const float2*>(weights + 8 * j + lane % 4 * 2);
    sum.x = fmaf(weight.x, twice_positive(d[4 * j]), sum.x);
    sum.x = fmaf(weight.y, twice_positive(d[4 * j + 1]), sum.x);
    sum.y = fmaf(weight.x, twice_positive(d[4 * j + 2]), sum.y);
    sum.y = fmaf(weight.y, twice_positive(d[4 * j + 3]), sum.y);
  }
#pragma unroll
  for (int bit = 1; bit < 4; bit *= 2) {
    sum.x += __shfl_xor_sync(0xFFFFFFFFu, sum.x, bit);
    sum.y += __shfl_xor_sync(0xFFFFFFFFu, sum.y, bit);
  }
  return sum;
}

__device__ __forceinline__ std::uint16_t bf16_bits(float value) {
  return static_cast<std::uint16_t>(ptx::bf16x2_round(value, 0.0f));
}

// Largest visible score of each of the warp's two units.
__device__ __forceinline__ void store_block_maxima(const IndexInput& input, int token, int first_key,
                                                   float2 sum, int lane) {
  const int visible = input.visible[token];
  float low = first_key + lane / 4 < visible ? sum.x : -INFINITY;
  float high = first_key + 8 + lane / 4 < visible ? sum.y : -INFINITY;
#pragma unroll
  for (int bit = 4; bit < 32; bit *= 2) {
    low = fmaxf(low, __shfl_xor_sync(0xFFFFFFFFu, low, bit));
    high = fmaxf(high, __shfl_xor_sync(0xFFFFFFFFu, high, bit));
  }
  if (lane < 2) {
    const std::size_t at = static_cast<std::size_t>(token) * (input.score_stride / 8) + first_key / 8 + lane;
    input.block_maxima[at] = bf16_bits(lane == 0 ? low : high);
  }
}

// One token against the 64 keys whose registers are in `a`.
template <bool maxima>
__device__ __forceinline__ void score_token(const IndexInput& input, std::uint64_t query,
                                            const std::uint32_t (&a)[2][16], const float* weights, int row,
                                            int first_key, int lane, std::uint16_t* scores) {
  float d[16];
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < 8; ++step) {
    ptx::wgmma_rs<32, 0>(d, &a[step / 4][4 * (step % 4)], query + (step / 4 * 1024 + step % 4 * 32) / 16,
                         step != 0);
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  const float2 sum = sum_heads(d, weights, lane);
  if (lane % 4 < 2) {
    std::uint16_t* at = scores + static_cast<std::size_t>(row) * input.score_stride + first_key;
    at[lane % 4 * 8 + lane / 4] = bf16_bits(lane % 4 == 0 ? sum.x : sum.y);
  }
  if constexpr (maxima) store_block_maxima(input, row, first_key, sum, lane);
}

template <int max_tokens, bool maxima>
__device__ void score_keys(const IndexInput& input, const IndexJob& job, IndexShared<max_tokens>& shared,
                           std::uint32_t& phases, std::uint16_t* scores) {
  constexpr int stages = IndexConfig<max_tokens>::stages;
  const int group = threadIdx.x / 128;
  const int warp = threadIdx.x / 32 % 4;
  const int lane = threadIdx.x % 32;
  const std::uint64_t queries =
      ptx::row_descriptor(ptx::shared_address(shared.queries[0]), operand_atom_bytes);
  const std::uint8_t* units = shared.keys[0] + group * 8 * index_unit_bytes;
  const int count = job.stages();
#pragma unroll 1
  for (int first = 0; first < count; first += stages) {
#pragma unroll
    for (int stage = 0; stage < stages; ++stage) {
      if (first + stage < count) {
        ptx::barrier_wait(ptx::shared_address(&shared.full[stage]), phases >> stage & 1);
        phases ^= 1u << stage;
        std::uint32_t a[2][16];
        widen_keys(units + stage * stage_bytes, warp, lane, a);
        __syncwarp();
        if (lane == 0) ptx::barrier_arrive(ptx::shared_address(&shared.empty[stage]));
        const int first_key = job.first_key + (first + stage) * stage_keys + group * 64 + warp * 16;
        if constexpr (max_tokens == 1) {
          score_token<maxima>(input, queries, a, shared.weights[0], job.row.first_token, first_key, lane,
                              scores);
        } else {
#pragma unroll 1
          for (int token = 0; token < job.row.tokens; ++token) {
            score_token<maxima>(input, queries + token * (query_bytes / 16), a, shared.weights[token],
                                job.row.first_token + token, first_key, lane, scores);
          }
        }
      }
    }
  }
}

template <int max_tokens, bool maxima>
__global__ void __launch_bounds__(IndexConfig<max_tokens>::threads, IndexConfig<max_tokens>::blocks_an_sm)
    index_kernel(const __grid_constant__ IndexInput input, std::uint16_t* scores, int jobs_a_row) {
  using Config = IndexConfig<max_tokens>;
  extern __shared__ __align__(1024) std::uint8_t shared_base[];
  IndexShared<max_tokens>& shared = *reinterpret_cast<IndexShared<max_tokens>*>(shared_base);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Config::stages; ++stage) {
      ptx::barrier_init(ptx::shared_address(&shared.full[stage]), 1);
      ptx::barrier_init(ptx::shared_address(&shared.empty[stage]), 8);
    }
    ptx::barrier_init_fence();
  }
  __syncthreads();
  std::uint32_t phases = 0;  // of each stage, a bit
  for (int index = blockIdx.x; index < input.row_count * jobs_a_row; index += gridDim.x) {
    const IndexJob job = index_job(input, index, jobs_a_row);
    if (job.first_key >= job.end_key) continue;
    if (threadIdx.x >= 256) {
      load_keys(input, job, shared, phases);
      continue;
    }
    // The queries of the last job are no longer read once both warpgroups are here.
    ptx::named_barrier(1, 256);
    const auto* source = reinterpret_cast<const uint4*>(input.queries) +
                         static_cast<std::size_t>(job.row.first_token) * (query_bytes / 16);
    for (int i = threadIdx.x; i < job.row.tokens * query_bytes / 16; i += 256) {
      reinterpret_cast<uint4*>(shared.queries[0])[i] = source[i];
    }
    for (int i = threadIdx.x; i < job.row.tokens * index_heads; i += 256) {
      shared.weights[0][i] = 0.5f * input.weights[job.row.first_token * index_heads + i];
    }
    ptx::async_proxy_fence();
    ptx::named_barrier(1, 256);
    score_keys<max_tokens, maxima>(input, job, shared, phases, scores);
  }
}

template <int max_tokens, bool maxima>
void launch(const IndexInput& input, std::uint16_t* scores, cudaStream_t stream) {
  using Config = IndexConfig<max_tokens>;
  constexpr int shared_bytes = sizeof(IndexShared<max_tokens>);
  const auto kernel = index_kernel<max_tokens, maxima>;
  static const cudaError_t prepared =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  check(prepared, "index scores: shared memory");
  const int jobs_a_row = (input.max_keys + job_keys - 1) / job_keys;
  const int grid = std::min(input.row_count * jobs_a_row, 132 * Config::blocks_an_sm);
  kernel<<<grid, Config::threads, shared_bytes, stream>>>(input, scores, jobs_a_row);
  check(cudaGetLastError(), "index scores");
}

}  // namespace

void index_scores(const IndexInput& input, std::uint16_t* scores, cudaStream_t stream) {
  if (input.max_keys == 0) return;
  if (input.max_tokens == 1) {
    input.block_maxima == nullptr ? launch<1, false>(input, scores, stream)
                                  : launch<1, true>(input, scores, stream);
  } else {
    input.block_maxima == nullptr ? launch<8, false>(input, scores, stream)
                                  : launch<8, true>(input, scores, stream);
  }
}

}  // namespace thalweg::cuda
