// Sorting tokens by expert, gathering their rows, and summing the results: small kernels around the expert
// products. Roofline: a row of 5120 bf16 values is 10 kB; gather and combine move 2 x 10 and 7 x 10 kB a
// token.
#include "backend/cuda/device.hpp"
#include "backend/cuda/experts.hpp"
#include "backend/cuda/ptx.cuh"

namespace thalweg::cuda {
namespace {

constexpr int sort_threads = 1024;
constexpr int max_experts = 512;

struct SortJob {
  const int* ids;
  int entries;
  int experts;
  int tile_rows;
  int row_capacity;
  int* row_of;
  int* entry_of;
  ExpertTile* tiles;
  int* tile_count;
};

// One block: counts, prefix sums over experts (rows padded to atoms, tiles), then places. Entries of one
// expert take their rows in any order.
__global__ void __launch_bounds__(sort_threads) sort_kernel(SortJob job) {
  __shared__ int counts[max_experts];
  __shared__ int first_row[max_experts + 1];
  __shared__ int first_tile[max_experts + 1];
  const int thread = threadIdx.x;
  for (int expert = thread; expert < job.experts; expert += sort_threads) counts[expert] = 0;
  __syncthreads();
  for (int entry = thread; entry < job.entries; entry += sort_threads) {
    if (job.ids[entry] >= 0) atomicAdd(&counts[job.ids[entry]], 1);
  }
  __syncthreads();
  if (thread < 32) {
    int rows = 0;
    int tiles = 0;
    for (int base = 0; base < job.experts; base += 32) {
      const int expert = base + thread;
      const int count = expert < job.experts ? counts[expert] : 0;
      int row_sum = (count + 7) / 8 * 8;
      int tile_sum = (count + job.tile_rows - 1) / job.tile_rows;
      for (int step = 1; step < 32; step *= 2) {
        const int row_left = __shfl_up_sync(0xFFFFFFFFu, row_sum, step);
        const int tile_left = __shfl_up_sync(0xFFFFFFFFu, tile_sum, step);
        if (thread >= step) {
          row_sum += row_left;
          tile_sum += tile_left;
        }
      }
      if (expert < job.experts) {
        first_row[expert + 1] = rows + row_sum;
        first_tile[expert + 1] = tiles + tile_sum;
      }
      rows += __shfl_sync(0xFFFFFFFFu, row_sum, 31);
      tiles += __shfl_sync(0xFFFFFFFFu, tile_sum, 31);
    }
    if (thread == 0) {
      first_row[0] = 0;
      first_tile[0] = 0;
      *job.tile_count = tiles;
    }
  }
  __syncthreads();
  for (int expert = thread; expert < job.experts; expert += sort_threads) {
    const int row = first_row[expert];
    const int tile = first_tile[expert];
    for (int i = tile; i < first_tile[expert + 1]; ++i) {
      const int done = (i - tile) * job.tile_rows;
      job.tiles[i] = {expert, row + done, min(job.tile_rows, counts[expert] - done)};
    }
    for (int i = row + counts[expert]; i < first_row[expert + 1]; ++i) job.entry_of[i] = -1;
  }
  const int used = first_row[job.experts];
  for (int row = used + thread; row < job.row_capacity; row += sort_threads) job.entry_of[row] = -1;
  __syncthreads();
  for (int entry = thread; entry < job.entries; entry += sort_threads) {
    const int expert = job.ids[entry];
    if (expert < 0) {
      job.row_of[entry] = -1;
    } else {
      const int row = atomicAdd(&first_row[expert], 1);
      job.row_of[entry] = row;
      job.entry_of[row] = entry;
    }
  }
}

// A block copies the 8 rows of an atom, 64 threads a half slice: 8 lanes of 16 bytes a row.
__global__ void __launch_bounds__(256)
    gather_kernel(const int* entry_of, int slots, const uint4* source, int source_atoms, uint4* target,
                  int target_atoms, int halves) {
  const int chunk = threadIdx.x % 8;
  const int row = blockIdx.x * 8 + threadIdx.x / 8 % 8;
  const int entry = entry_of[row];
  if (entry < 0) return;
  const int token = entry / slots;
  for (int half = blockIdx.y * 4 + threadIdx.x / 64; half < halves; half += gridDim.y * 4) {
    const std::size_t from = operand_index(token, half * 64, source_atoms) / 8 & ~std::size_t{7};
    const std::size_t to = operand_index(row, half * 64, target_atoms) / 8 & ~std::size_t{7};
    target[to + (chunk ^ (row % 8))] = source[from + (chunk ^ (token % 8))];
  }
}

__global__ void __launch_bounds__(128) combine_kernel(const int* row_of, int slots, const uint4* expert_rows,
                                                      const uint4* shared, int chunks, uint4* out) {
  const int token = blockIdx.x;
  const int chunk = blockIdx.y * 128 + threadIdx.x;
  if (chunk >= chunks) return;
  float sums[8] = {};
  const auto add = [&](const uint4& values) {
    const std::uint32_t words[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sums[2 * i] += ptx::bf16_low(words[i]);
      sums[2 * i + 1] += ptx::bf16_high(words[i]);
    }
  };
#pragma unroll 6
  for (int slot = 0; slot < slots; ++slot) {
    const int row = row_of[token * slots + slot];
    if (row >= 0) add(expert_rows[static_cast<std::size_t>(row) * chunks + chunk]);
  }
  if (shared != nullptr) add(shared[static_cast<std::size_t>(token) * chunks + chunk]);
  out[static_cast<std::size_t>(token) * chunks + chunk] =
      make_uint4(ptx::bf16x2_round(sums[0], sums[1]), ptx::bf16x2_round(sums[2], sums[3]),
                 ptx::bf16x2_round(sums[4], sums[5]), ptx::bf16x2_round(sums[6], sums[7]));
}

// Rows of a tile for an average of `rows` rows an expert: room for the usual spread.
int choose_tile_rows(double rows) {
  if (rows <= 9) return 16;
  if (rows <= 20) return 32;
  if (rows <= 64) return 64;
  return 128;
}

}  // namespace

ExpertPlan::ExpertPlan(int max_tokens, int experts_a_token, int experts)
    : experts_a_token_(experts_a_token),
      experts_(experts),
      row_of_(static_cast<std::size_t>(max_tokens) * experts_a_token),
      entry_of_(row_capacity(max_tokens)),
      tiles_(static_cast<std::size_t>(experts) + static_cast<std::size_t>(max_tokens) * experts_a_token / 16 +
             1),
      tile_count_(1) {}

int ExpertPlan::row_capacity(int tokens) const {
  const int entries = tokens * experts_a_token_;
  return (entries + 7 * (entries < experts_ ? entries : experts_) + 7) / 8 * 8;
}

int ExpertPlan::max_tiles() const {
  const int entries = tokens_ * experts_a_token_;
  return (entries < experts_ ? entries : experts_) + entries / tile_rows_;
}

void ExpertPlan::sort(const int* ids, int tokens, cudaStream_t stream) {
  tokens_ = tokens;
  const int entries = tokens * experts_a_token_;
  const double rows = static_cast<double>(entries) / (experts_ < entries ? experts_ : entries);
  tile_rows_ = choose_tile_rows(rows);
  many_rows_ = rows > 250;
  sort_kernel<<<1, sort_threads, 0, stream>>>({ids, entries, experts_, tile_rows_, row_capacity(),
                                               row_of_.data(), entry_of_.data(), tiles_.data(),
                                               tile_count_.data()});
  check(cudaGetLastError(), "sort tokens by expert");
}

void gather_expert_rows(const ExpertPlan& plan, const OperandView& x, const OperandView& sorted,
                        cudaStream_t stream) {
  const int halves = padded_columns(x.columns) / 64;
  const dim3 grid(plan.row_capacity() / 8, plan.row_capacity() < 4096 ? 10 : 2);
  gather_kernel<<<grid, 256, 0, stream>>>(plan.entry_of(), plan.experts_a_token(),
                                          reinterpret_cast<const uint4*>(x.data), x.atoms(),
                                          reinterpret_cast<uint4*>(sorted.data), sorted.atoms(), halves);
  check(cudaGetLastError(), "gather expert rows");
}

void combine_experts(const ExpertPlan& plan, const std::uint16_t* expert_rows, const std::uint16_t* shared,
                     int width, std::uint16_t* out, cudaStream_t stream) {
  const int chunks = width / 8;
  const dim3 grid(plan.tokens(), (chunks + 127) / 128);
  combine_kernel<<<grid, 128, 0, stream>>>(
      plan.row_of(), plan.experts_a_token(), reinterpret_cast<const uint4*>(expert_rows),
      reinterpret_cast<const uint4*>(shared), chunks, reinterpret_cast<uint4*>(out));
  check(cudaGetLastError(), "combine experts");
}

}  // namespace thalweg::cuda
