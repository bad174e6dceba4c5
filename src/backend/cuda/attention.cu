// Sparse attention of 64 heads over shared 512-wide keys that are their own values.
//
// Roofline: 288 bytes a selected key and 528 a window key from HBM, 131 kFLOP a key on the bf16 matrix unit:
// at 640 keys a row both take about 95 ns of the whole device (6.1 us for 64 rows). What costs more in
// practice is widening the keys (3 instructions a value), so a warpgroup does only that, and the matrix unit
// never waits for it if it can be helped.
//
// A row's keys are cut into two parts of six tiles of 64 keys at most (the window and the first 192 selected;
// the others), each for one block of a cluster. In a block warpgroup 2 widens tiles into two buffers;
// warpgroups 0 and 1 multiply: each takes half of a tile's keys for the scores, they exchange maxima and
// probabilities through shared memory, and each sums half of the channels. The running maximum starts at
// -1e30. At the end the blocks exchange the sums of half of the heads each.
#include "backend/cuda/attention.hpp"
#include "backend/cuda/device.hpp"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/unpack_rows.cuh"
#include "backend/cuda/wgmma.cuh"

namespace thalweg::cuda {
namespace {

constexpr int heads = 64;
constexpr int selection_limit = 512;
constexpr int first_part_entries = 192;
constexpr int max_part_tiles = 6;  // 3 of the window, 3 selected; or 5 selected
constexpr int attention_threads = 384;
constexpr float no_score = -1e30f;
// Scores in units of log2: 1 / sqrt(512) * log2(e), and 2^8 for the keys' own factor.
constexpr float score_factor = 0.044194173824159216f * 1.4426950408889634f * 256.0f;

struct AttentionShared {
  std::uint8_t keys[2][key_tile_bytes];
  std::uint8_t q[key_tile_bytes];
  std::uint8_t probabilities[64 * 128];
  float maxima[2][heads];
  float sums[2][heads];
  float2 state[heads];  // maximum and sum of the block's part
  const std::uint8_t* rows[max_part_tiles * key_tile];
  alignas(8) std::uint64_t full[2];
  alignas(8) std::uint64_t empty[2];
};

/// The tiles of one part of a row's keys: window tiles first, then selected ones.
struct TileList {
  int window_tiles;
  int selected_tiles;
  int first_entry;
  AttentionRow row;

  __device__ TileList(const AttentionRow& row_, int part, int parts) : row(row_) {
    window_tiles = part == 0 ? (row.window_count + key_tile - 1) / key_tile : 0;
    first_entry = part == 0 ? 0 : first_part_entries;
    const int end = part + 1 < parts ? min(row.selected, first_part_entries) : row.selected;
    selected_tiles = max(0, end - first_entry + key_tile - 1) / key_tile;
  }
  __device__ int count() const { return window_tiles + selected_tiles; }
  __device__ bool is_window(int tile) const { return tile < window_tiles; }
  /// First key of the tile in its own list, and how many of its 64 exist.
  __device__ int first_key(int tile) const {
    return is_window(tile) ? tile * key_tile : first_entry + (tile - window_tiles) * key_tile;
  }
  __device__ int keys(int tile) const {
    return min(key_tile, (is_window(tile) ? row.window_count : row.selected) - first_key(tile));
  }
};

__device__ const std::uint8_t* window_row(const WindowCache& cache, const AttentionRow& row, int key) {
  const int ring_row = (row.window_first + key) % cache.ring_rows;
  return cache.base + row.slot * cache.slot_stride + static_cast<std::size_t>(ring_row) * window_row_bytes;
}

__device__ const std::uint8_t* compressed_row(const CompressedCache& cache, const AttentionRow& row,
                                              int entry) {
  const int page = cache.tables[row.sequence * cache.table_stride + entry / cache.page_rows];
  return cache.base + page * cache.page_stride +
         static_cast<std::size_t>(entry % cache.page_rows) * compressed_row_bytes;
}

// Finds where the keys of all tiles lie; run by the widening warpgroup. Where a tile has fewer keys the last
// one stands in: its probability will be zero, so that anything finite serves.
__device__ void find_rows(const AttentionInput& input, int query, const TileList& tiles,
                          AttentionShared& shared) {
  for (int i = threadIdx.x - 256; i < tiles.count() * key_tile; i += 128) {
    const int tile = i / key_tile;
    const int index = tiles.first_key(tile) + min(i % key_tile, tiles.keys(tile) - 1);
    shared.rows[i] =
        tiles.is_window(tile)
            ? window_row(input.window, tiles.row, index)
            : compressed_row(input.compressed, tiles.row,
                             input.selection[static_cast<std::size_t>(query) * selection_limit + index]);
  }
  ptx::named_barrier(3, 128);
}

// The widening warpgroup works on half tiles of 32 keys: a thread has key lane % 8 of its warp's 8 and a
// quarter of the channels, so that stores of 8 lanes fall in different banks.
struct Widener {
  const TileList& tiles;
  AttentionShared& shared;
  int key;
  int quarter;

  __device__ Widener(const TileList& tiles_, AttentionShared& shared_) : tiles(tiles_), shared(shared_) {
    const int lane = threadIdx.x % 32;
    key = (threadIdx.x - 256) / 32 * 8 + lane % 8;
    quarter = lane / 8;
  }

  template <class Quarter>
  __device__ __forceinline__ void load(int half_tile, Quarter& part) const {
    part.load(shared.rows[half_tile * 32 + key], quarter);
  }

  template <class Quarter>
  __device__ __forceinline__ void store(int half_tile, const Quarter& part) const {
    const int tile = half_tile / 2;
    const int buffer = tile % 2;
    ptx::barrier_wait(ptx::shared_address(&shared.empty[buffer]), (tile / 2 & 1) ^ 1);
    part.store(shared.keys[buffer], half_tile % 2 * 32 + key, quarter);
    ptx::async_proxy_fence();
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::barrier_arrive(ptx::shared_address(&shared.full[buffer]));
  }

  // Half tiles [begin, end), of which the first two are loaded. A load follows the fence of a store, which
  // would wait for it; it is issued in any case, so that nothing but its use waits.
  template <class Quarter>
  __device__ __forceinline__ void run(int begin, int end, Quarter (&parts)[2]) const {
#pragma unroll 1
    for (int first = begin; first < end; first += 2) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        store(first + i, parts[i]);
        load(min(first + 2, end - 2) + i, parts[i]);
      }
    }
  }

  __device__ void run() const {
    const int windows = 2 * tiles.window_tiles;
    const int end = 2 * tiles.count();
    CompressedQuarter compressed[2];
    WindowQuarter window[2];
    if (windows > 0) {
      load(0, window[0]);
      load(1, window[1]);
    }
    if (end > windows) {
      load(windows, compressed[0]);
      load(windows + 1, compressed[1]);
    }
    run(0, windows, window);
    run(windows, end, compressed);
  }
};

// Run by the two multiplying warpgroups.
__device__ void load_q(const std::uint16_t* q, AttentionShared& shared) {
#pragma unroll 8
  for (int i = threadIdx.x; i < heads * 64; i += 256) {
    const int head = i / 64;
    *reinterpret_cast<uint4*>(shared.q + key_chunk_offset(head, i % 64)) =
        reinterpret_cast<const uint4*>(q)[i];
  }
  ptx::async_proxy_fence();
  ptx::named_barrier(1, 256);
}

__device__ __forceinline__ float quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xFFFFFFFFu, value, 2));
}
__device__ __forceinline__ float quad_sum(float value) {
  value += __shfl_xor_sync(0xFFFFFFFFu, value, 1);
  return value + __shfl_xor_sync(0xFFFFFFFFu, value, 2);
}

/// State of a multiplying warpgroup. A thread holds two heads: `row` and `row` + 8.
struct Accumulator {
  float o[2][64];  // 128 channels each
  float maximum[2] = {no_score, no_score};
  float sum[2] = {0.0f, 0.0f};  // over the keys of this warpgroup, this thread's columns
};

__device__ __forceinline__ void scores_of_tile(const AttentionShared& shared, int buffer, int group,
                                               float (&s)[16]) {
  const std::uint64_t q = ptx::row_descriptor(ptx::shared_address(shared.q), 1024);
  const std::uint64_t keys =
      ptx::row_descriptor(ptx::shared_address(shared.keys[buffer]) + group * 32 * 128, 1024);
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < 32; ++step) {
    const int offset = (step / 4 * key_slice_bytes + step % 4 * 32) / 16;
    ptx::wgmma_ss<32, 0>(s, q + offset, keys + offset, step != 0);
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
}

// Scores -> probabilities in shared memory; both warpgroups agree on the maximum. Returns what the old sums
// must be multiplied by.
__device__ __forceinline__ float2 probabilities_of_tile(AttentionShared& shared, int keys, int group,
                                                        float (&s)[16], Accumulator& state) {
  const int lane = threadIdx.x % 32;
  const int row = threadIdx.x % 128 / 32 * 16 + lane / 4;
  float largest[2] = {no_score, no_score};
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int key = group * 32 + i / 4 * 8 + lane % 4 * 2 + i % 2;
    s[i] = key < keys ? s[i] * score_factor : no_score;
    largest[i / 2 % 2] = fmaxf(largest[i / 2 % 2], s[i]);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    largest[half] = quad_max(largest[half]);
    if (lane % 4 == 0) shared.maxima[group][row + 8 * half] = largest[half];
  }
  ptx::named_barrier(1, 256);
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float both = fmaxf(largest[half], shared.maxima[1 - group][row + 8 * half]);
    const float maximum = fmaxf(state.maximum[half], both);
    factor[half] = exp2f(state.maximum[half] - maximum);
    state.maximum[half] = maximum;
    state.sum[half] *= factor[half];
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float p[2];
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int key = group * 32 + j * 8 + lane % 4 * 2 + k;
        p[k] = key < keys ? exp2f(s[4 * j + 2 * half + k] - state.maximum[half]) : 0.0f;
        state.sum[half] += p[k];
      }
      const int head = row + 8 * half;
      const int offset = head * 128 + (((group * 4 + j) ^ (head % 8)) * 16) + lane % 4 * 4;
      *reinterpret_cast<std::uint32_t*>(shared.probabilities + offset) = ptx::bf16x2_round(p[0], p[1]);
    }
  }
  ptx::async_proxy_fence();
  return make_float2(factor[0], factor[1]);
}

__device__ __forceinline__ void add_values_of_tile(const AttentionShared& shared, int buffer, int group,
                                                   float (&o)[2][64]) {
  const std::uint64_t p = ptx::row_descriptor(ptx::shared_address(shared.probabilities), 1024);
  const std::uint64_t values = ptx::column_descriptor(
      ptx::shared_address(shared.keys[buffer]) + group * 4 * key_slice_bytes, key_slice_bytes);
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      ptx::wgmma_ss<128, 1>(o[half], p + step * 32 / 16,
                            values + (step * 2048 + half * 2 * key_slice_bytes) / 16, 1);
    }
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
}

__device__ void multiply_tiles(const TileList& tiles, AttentionShared& shared, Accumulator& state) {
  const int group = threadIdx.x / 128;
#pragma unroll
  for (int i = 0; i < 128; ++i) state.o[i / 64][i % 64] = 0.0f;
  for (int tile = 0; tile < tiles.count(); ++tile) {
    const int buffer = tile % 2;
    ptx::barrier_wait(ptx::shared_address(&shared.full[buffer]), tile / 2 & 1);
    float s[16];
    scores_of_tile(shared, buffer, group, s);
    const float2 factor = probabilities_of_tile(shared, tiles.keys(tile), group, s, state);
#pragma unroll
    for (int i = 0; i < 128; ++i) state.o[i / 64][i % 64] *= i / 2 % 2 == 0 ? factor.x : factor.y;
    ptx::named_barrier(2, 256);
    add_values_of_tile(shared, buffer, group, state.o);
    if (threadIdx.x % 32 == 0) ptx::barrier_arrive(ptx::shared_address(&shared.empty[buffer]));
  }
}

// The whole part's sum of a head: the two warpgroups' sums in order.
__device__ void publish_state(AttentionShared& shared, const Accumulator& state) {
  const int group = threadIdx.x / 128;
  const int lane = threadIdx.x % 32;
  const int row = threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = quad_sum(state.sum[half]);
    if (lane % 4 == 0) shared.sums[group][row + 8 * half] = sum;
  }
  ptx::named_barrier(1, 256);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int head = row + 8 * half;
    if (group == 0 && lane % 4 == 0) {
      shared.state[head] = make_float2(state.maximum[half], shared.sums[0][head] + shared.sums[1][head]);
    }
  }
}

__device__ __forceinline__ float2 load_state(const AttentionShared& shared, int head, std::uint32_t rank) {
  const std::uint32_t at = ptx::cluster_address(ptx::shared_address(&shared.state[head]), rank);
  return make_float2(ptx::cluster_load(at), ptx::cluster_load(at + 4));
}

/// Where the output goes.
struct OutputPlace {
  std::uint16_t* out;
  int atoms;
  std::size_t group_values;
};

// Divides by the sum of both parts (and the sink), rotates back and stores the thread's channels of one of
// its two heads. With two parts the other block's sums are added first; both blocks compute them from the
// same two numbers a head, in the same order.
template <int parts, int half>
__device__ void finish_head(const AttentionInput& input, int query, const AttentionShared& shared,
                            std::uint32_t rank, const float (&o)[2][64], const OutputPlace& place) {
  const int group = threadIdx.x / 128;
  const int lane = threadIdx.x % 32;
  const int head = threadIdx.x % 128 / 32 * 16 + lane / 4 + 8 * half;
  const float2 mine = load_state(shared, head, rank);
  const float2 other = parts == 2 ? load_state(shared, head, rank ^ 1) : make_float2(no_score, 0.0f);
  const float2 first = rank == 0 ? mine : other;
  const float2 second = rank == 0 ? other : mine;
  const float maximum = fmaxf(first.x, second.x);
  const float first_factor = exp2f(first.x - maximum);
  const float second_factor = exp2f(second.x - maximum);
  const float sink = exp2f(input.sinks[head] * 1.4426950408889634f - maximum);
  const float total = first.y * first_factor + second.y * second_factor + sink;
  const float weight = maximum == no_score ? 0.0f : 256.0f / total;
  const float my_factor = rank == 0 ? first_factor : second_factor;
  const float other_factor = rank == 0 ? second_factor : first_factor;
  const std::uint32_t at =
      parts == 2 ? ptx::cluster_address(ptx::shared_address(shared.keys[0]), rank ^ 1) + threadIdx.x * 16 : 0;
  std::uint16_t* base = place.out + head / 8 * place.group_values + operand_index(query, 0, place.atoms) +
                        static_cast<std::size_t>(head % 8 * 4 + group * 2) * place.atoms * 1024 +
                        lane % 4 * 2;
  base -= (query % 8) * 8;  // chunk 0 of the row: its swizzle is added below
#pragma unroll
  for (int pair = 0; pair < 16; ++pair) {
    const float4 added =
        parts == 2 ? ptx::cluster_load4(at + pair * 4096) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int j = 2 * pair + k;
      const float* sums = &o[j / 16][4 * (j % 16) + 2 * half];
      const float u = (sums[0] * my_factor + (k == 0 ? added.x : added.z) * other_factor) * weight;
      const float v = (sums[1] * my_factor + (k == 0 ? added.y : added.w) * other_factor) * weight;
      std::uint32_t rounded = ptx::bf16x2_round(u, v);
      if (j >= 24 && group == 1) {
        const float2 rotation = input.rotations[query * 32 + (j - 24) * 4 + lane % 4];
        const float x = ptx::bf16_low(rounded);
        const float y = ptx::bf16_high(rounded);
        rounded = ptx::bf16x2_round(x * rotation.x + y * rotation.y, y * rotation.x - x * rotation.y);
      }
      std::uint16_t* to = base + static_cast<std::size_t>(j / 16) * place.atoms * 1024 + j / 8 % 2 * 512;
      *reinterpret_cast<std::uint32_t*>(to + (((j % 8) ^ (query % 8)) * 8)) = rounded;
    }
  }
}

// Leaves the sums of one head for the other block.
template <int half>
__device__ void lend_sums(AttentionShared& shared, const float (&o)[2][64]) {
#pragma unroll
  for (int pair = 0; pair < 16; ++pair) {
    const float* sums = &o[pair / 8][8 * (pair % 8) + 2 * half];
    *reinterpret_cast<float4*>(shared.keys[0] + pair * 4096 + threadIdx.x * 16) =
        make_float4(sums[0], sums[1], sums[4], sums[5]);
  }
}

template <int parts>
__global__ void __launch_bounds__(attention_threads, 1)
    attention_kernel(const __grid_constant__ AttentionInput input,
                     const __grid_constant__ OutputPlace place) {
  extern __shared__ __align__(1024) std::uint8_t shared_base[];
  AttentionShared& shared = *reinterpret_cast<AttentionShared*>(shared_base);
  const int query = blockIdx.x / parts;
  const std::uint32_t rank = parts == 2 ? ptx::cluster_rank() : 0;
  if (threadIdx.x == 0) {
    for (int buffer = 0; buffer < 2; ++buffer) {
      ptx::barrier_init(ptx::shared_address(&shared.full[buffer]), 8);
      ptx::barrier_init(ptx::shared_address(&shared.empty[buffer]), 8);
    }
    ptx::barrier_init_fence();
  }
  __syncthreads();
  const TileList tiles(input.rows[query], rank, parts);
  if (threadIdx.x >= 256) {
    ptx::give_registers<152>();
    find_rows(input, query, tiles, shared);
    Widener(tiles, shared).run();
    if constexpr (parts == 2) {
      __syncwarp();
      ptx::cluster_sync();
      ptx::cluster_sync();
    }
    return;
  }
  ptx::take_registers<176>();
  load_q(input.q + static_cast<std::size_t>(query) * heads * head_width, shared);
  Accumulator state;
  multiply_tiles(tiles, shared, state);
  publish_state(shared, state);
  if constexpr (parts == 2) {
    // Block 0 finishes each thread's first head, block 1 its second.
    rank == 0 ? lend_sums<1>(shared, state.o) : lend_sums<0>(shared, state.o);
    ptx::cluster_sync();
    rank == 0 ? finish_head<2, 0>(input, query, shared, rank, state.o, place)
              : finish_head<2, 1>(input, query, shared, rank, state.o, place);
    ptx::cluster_sync();
  } else {
    ptx::named_barrier(1, 256);
    finish_head<1, 0>(input, query, shared, rank, state.o, place);
    finish_head<1, 1>(input, query, shared, rank, state.o, place);
  }
}

template <int parts>
void launch(const AttentionInput& input, const OperandView& out, cudaStream_t stream) {
  const auto kernel = attention_kernel<parts>;
  static const cudaError_t prepared = cudaFuncSetAttribute(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(sizeof(AttentionShared)));
  check(prepared, "attention: shared memory");
  const OutputPlace place{out.data, out.atoms(), operand_values(out.rows, out.columns)};
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {parts, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = input.row_count * parts;
  config.blockDim = attention_threads;
  config.dynamicSmemBytes = sizeof(AttentionShared);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, input, place), "attention");
}

}  // namespace

void sparse_attention(const AttentionInput& input, const OperandView& out, cudaStream_t stream) {
  if (input.selection == nullptr) {
    launch<1>(input, out, stream);
  } else {
    launch<2>(input, out, stream);
  }
}

}  // namespace thalweg::cuda
