// The product of packed weights with a few or many rows: out[row, n] = sum_k weight[n, k] * operand[row, k].
//
// Roofline: weight bytes / HBM rate as long as rows < about 200 (FP8) or 100 (FP4) a matrix; matrix unit
// beyond. What has to be hidden is the widening (FP4: 12 instructions for 8 weights, FP8: 7 for 4) and the
// operand's way through L2, 256 bytes a row for 128 columns in every block; a block therefore takes 128 or
// 256 weight rows.
//
// Weights are the instruction's 64-row side: 128 MT weight rows x N operand rows a job. One warp streams
// stages of 128 columns into shared memory (plain bulk copies: both sides lie in memory in tile order); two
// warpgroups widen their 64 MT rows in registers and multiply. Two register buffers let the widening of one
// block run beside the products of the last. Sums are fp32 in the matrix unit, columns in ascending order;
// `split` cuts the columns into parts over the blocks of a cluster, whose sums are added in rank order.
// Neither N, MT nor the grid changes the order of a sum, and the number of parts depends on the matrix alone:
// a row's result does not depend on the other rows.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "backend/cuda/codec.cuh"
#include "backend/cuda/device.hpp"
#include "backend/cuda/operand.hpp"
#include "backend/cuda/ptx.cuh"
#include "backend/cuda/wgmma.cuh"

namespace thalweg::cuda {

/// What one block works on: 64-row tiles [first_tile, first_tile + 2 MT) of one packed matrix and up to N
/// operand rows.
struct GemmJob {
  const std::uint8_t* weights;   ///< packed matrix
  const std::uint16_t* operand;  ///< first atom of slice 0
  int operand_atoms;             ///< atoms a slice: the stride between slices
  int first_tile;
  int row;   ///< first row of the job in the output
  int rows;  ///< rows of the job, at most N
};

template <class Codec, int N, int MT, bool split>
struct GemmConfig {
  // Two warpgroups that multiply and a warp that loads; the large tile needs a whole third warpgroup, which
  // hands its registers to the other two.
  static constexpr bool large = MT == 2;
  static constexpr int threads = large ? 384 : 288;
  // The parts of a sum have an SM each; else as many blocks as registers allow hide each other's latencies.
  static constexpr int blocks_an_sm = N == 128 || split ? 1 : N * Codec::block_bytes <= 16 * 4112 ? 3 : 2;
  static constexpr int operand_bytes = N * 256;  // of a stage: one slice
  static constexpr int tile_bytes = 2 * Codec::block_bytes;
  static constexpr int unit_bytes = 2 * tile_bytes;
  static constexpr int stage_bytes = operand_bytes + MT * unit_bytes;
  static constexpr int chunk = N < 16 ? N : 16;  // rows that leave the registers at a time
  static constexpr int exchange_bytes = split ? 0 : 2 * chunk * 68 * 4;
  static constexpr int shared_limit = blocks_an_sm == 3 ? 76800 : blocks_an_sm == 2 ? 115712 : 232448;
  static constexpr int stages_that_fit = (shared_limit - exchange_bytes - 256) / stage_bytes;
  static constexpr int stages = stages_that_fit < 12 ? stages_that_fit : 12;
  static constexpr int partial_pitch = 128 * MT + 4;
  static constexpr int shared_bytes = stages * stage_bytes + exchange_bytes + 256;
  static_assert(stages >= 2);
  static_assert(!split || N * partial_pitch * 4 <= stages * stage_bytes);
  static_assert(Codec::block_bytes % 16 == 0 && operand_bytes % 1024 == 0);
};

/// Shared memory of a block: all stages' operand slices, all stages' weights, the exchange buffer, the
/// barriers.
template <class Config>
struct GemmShared {
  std::uint8_t* base;

  __device__ std::uint8_t* operand(int stage) const { return base + stage * Config::operand_bytes; }
  __device__ std::uint8_t* weights(int stage) const {
    return base + Config::stages * Config::operand_bytes +
           stage * (Config::stage_bytes - Config::operand_bytes);
  }
  __device__ float* exchange() const {
    return reinterpret_cast<float*>(base + Config::stages * Config::stage_bytes);
  }
  __device__ std::uint32_t full(int stage) const { return barriers() + 8 * stage; }
  __device__ std::uint32_t empty(int stage) const { return barriers() + 8 * (Config::stages + stage); }

 private:
  __device__ std::uint32_t barriers() const {
    return ptx::shared_address(base + Config::stages * Config::stage_bytes + Config::exchange_bytes);
  }
};

/// Column blocks [begin, end) of a part of the sum; both even.
__device__ __forceinline__ int2 column_range(int column_blocks, int part, int parts) {
  const int pairs = column_blocks / 2;
  return {pairs * part / parts * 2, pairs * (part + 1) / parts * 2};
}

/// Where a job's stages come from. Run by a whole warp, which stays converged; one lane issues the copies.
template <class Codec, int MT, class Config>
struct JobLoader {
  const GemmShared<Config>& shared;
  const std::uint8_t* weights;
  std::size_t next_row;  // from one pair of tiles to the next; 0 beyond the matrix: the last pair again
  const std::uint8_t* operand;
  std::size_t slice_bytes;
  std::uint32_t operand_bytes;

  __device__ JobLoader(const GemmJob& job, int row_tiles, int column_blocks, int2 range,
                       const GemmShared<Config>& shared_)
      : shared(shared_) {
    const std::size_t row_bytes = static_cast<std::size_t>(column_blocks / 2) * Config::unit_bytes;
    const int row_pair = job.first_tile / 2;
    weights = job.weights + row_pair * row_bytes + range.x / 2 * Config::unit_bytes;
    next_row = row_pair < row_tiles / 2 - 1 ? row_bytes : 0;
    slice_bytes = static_cast<std::size_t>(job.operand_atoms) * operand_atom_bytes;
    operand = reinterpret_cast<const std::uint8_t*>(job.operand) + range.x / 2 * slice_bytes;
    operand_bytes = atom_count(job.rows) * operand_atom_bytes;
  }

  /// Announces a stage and starts its weights.
  __device__ void load_weights(int stage) {
    if (ptx::elected()) {
      const std::uint32_t full = shared.full(stage);
      const std::uint32_t target = ptx::shared_address(shared.weights(stage));
      ptx::barrier_expect(full, operand_bytes + MT * Config::unit_bytes);
      ptx::bulk_load_once(target, weights, Config::unit_bytes, full);
      if constexpr (MT == 2) {
        ptx::bulk_load_once(target + Config::unit_bytes, weights + next_row, Config::unit_bytes, full);
      }
    }
    weights += Config::unit_bytes;
  }
  __device__ void load_operand(int stage) {
    if (ptx::elected()) {
      ptx::bulk_load(ptx::shared_address(shared.operand(stage)), operand, operand_bytes, shared.full(stage));
    }
    operand += slice_bytes;
  }
};

/// Loads the stages of one job, from stage 0 on; `phases` holds the phase of each stage in a bit. Weights do
/// not depend on the last kernel, the operand does: the block's first job fills all stages with weights
/// before it waits for that kernel.
template <class Codec, int MT, class Config>
__device__ void load_job(const GemmJob& job, int row_tiles, int column_blocks, int2 range, bool first,
                         const GemmShared<Config>& shared, std::uint32_t& phases) {
  JobLoader<Codec, MT, Config> loader(job, row_tiles, column_blocks, range, shared);
  const int count = (range.y - range.x) / 2;
  const int early = first ? min(count, Config::stages) : 0;
  if (first) {
    for (int stage = 0; stage < early; ++stage) loader.load_weights(stage);
    ptx::wait_for_last_kernel();
    for (int stage = 0; stage < early; ++stage) loader.load_operand(stage);
    phases = (1u << early) - 1;
  }
  int stage = early % Config::stages;
#pragma unroll 1
  for (int i = early; i < count; ++i) {
    ptx::barrier_wait(shared.empty(stage), ~phases >> stage & 1);
    phases ^= 1u << stage;
    loader.load_weights(stage);
    loader.load_operand(stage);
    stage = stage + 1 == Config::stages ? 0 : stage + 1;
  }
}

/// Two register buffers: one is filled while the other's products run. Stages are unrolled, so that every
/// address is a constant away from the thread's own; `phases` holds the phase of each stage in a bit.
template <class Codec, int N, int MT, class Config>
__device__ void multiply_job(int2 range, const GemmShared<Config>& shared, std::uint32_t& phases,
                             float (&sums)[MT][N / 2]) {
  const int group = threadIdx.x / 128;
  const int warp = threadIdx.x / 32 % 4;
  const int lane = threadIdx.x % 32;
  const std::uint8_t* tile = shared.weights(0) + group * MT * Config::tile_bytes;
  const std::uint8_t* codes = tile + Codec::code_offset(warp, lane);
  const std::uint8_t* scales = tile + Codec::scale_offset(warp, lane);
  const std::uint64_t operand =
      ptx::row_descriptor(ptx::shared_address(shared.operand(0)), operand_atom_bytes);
  std::uint32_t a[2][16];
  bool first = true;
  int left = (range.y - range.x) / 2;
#pragma unroll 1
  for (; left > 0; left -= Config::stages) {
#pragma unroll
    for (int stage = 0; stage < Config::stages; ++stage) {
      if (stage < left) {
        ptx::barrier_wait(shared.full(stage), phases >> stage & 1);
        phases ^= 1u << stage;
#pragma unroll
        for (int part = 0; part < 2 * MT; ++part) {
          const int i = part / MT;
          const int m = part % MT;
          std::uint32_t(&buffer)[16] = a[part % 2];
          const int offset =
              stage * MT * Config::unit_bytes + m * Config::tile_bytes + i * Codec::block_bytes;
          Codec::widen(codes + offset, scales + offset, buffer);
          const std::uint64_t rows = operand + (stage * Config::operand_bytes + i * 1024) / 16;
          ptx::wgmma_fence();
#pragma unroll
          for (int step = 0; step < 4; ++step) {
            ptx::wgmma_rs<N, 0>(sums[m], &buffer[4 * step], rows + 2 * step,
                                stage == 0 && i == 0 && step == 0 ? !first : 1);
          }
          ptx::wgmma_commit();
          ptx::wgmma_wait<1>();
          // The last stage's products are done: its room is free.
          if (part == 0 && lane == 0) {
            if (stage > 0) {
              ptx::barrier_arrive(shared.empty(stage - 1));
            } else if (!first) {
              ptx::barrier_arrive(shared.empty(Config::stages - 1));
            }
          }
        }
        first = false;
      }
    }
  }
  ptx::wgmma_wait<0>();
  if (lane == 0) ptx::barrier_arrive(shared.empty(left + Config::stages - 1));
}

/// Hands the sums of one job to the epilogue, a few rows at a time through shared memory.
template <int N, int MT, class Config, class Epilogue>
__device__ void store_job(const GemmJob& job, int row_tiles, float* exchange, const float (&sums)[MT][N / 2],
                          const Epilogue& epilogue) {
  constexpr int chunk = Config::chunk;
  const int group = threadIdx.x / 128;
  const int warp = threadIdx.x / 32 % 4;
  const int lane = threadIdx.x % 32;
  float* buffer = exchange + group * chunk * 68;
  const int2 pair = Epilogue::pair(lane);
#pragma unroll
  for (int m = 0; m < MT; ++m) {
    const int tile = job.first_tile + group * MT + m;
#pragma unroll
    for (int first = 0; first < N; first += chunk) {
      if (first < job.rows) {
        ptx::named_barrier(1 + group, 128);
#pragma unroll
        for (int j = 0; j < chunk / 8; ++j) {
          const float* d = &sums[m][(first / 8 + j) * 4];
          float* at = buffer + (8 * j + lane % 4 * 2) * 68 + 16 * warp + lane / 4;
          at[0] = d[0];
          at[68] = d[1];
          at[8] = d[2];
          at[76] = d[3];
        }
        ptx::named_barrier(1 + group, 128);
        for (int row = warp; row < min(chunk, job.rows - first); row += 4) {
          if (tile < row_tiles) {
            epilogue.store(job, first + row, tile, buffer[row * 68 + pair.x], buffer[row * 68 + pair.y],
                           lane);
          }
        }
      }
    }
  }
}

/// Writes the block's partial sums to shared memory (over the stages, which are all consumed).
template <int N, int MT, class Config>
__device__ void stage_partial(float* partial, const float (&sums)[MT][N / 2]) {
  const int group = threadIdx.x / 128;
  const int warp = threadIdx.x / 32 % 4;
  const int lane = threadIdx.x % 32;
  ptx::named_barrier(1, 256);
#pragma unroll
  for (int m = 0; m < MT; ++m) {
#pragma unroll
    for (int j = 0; j < N / 8; ++j) {
      const float* d = &sums[m][4 * j];
      float* at = partial + (8 * j + lane % 4 * 2) * Config::partial_pitch + (group * MT + m) * 64 +
                  16 * warp + lane / 4;
      at[0] = d[0];
      at[Config::partial_pitch] = d[1];
      at[8] = d[2];
      at[Config::partial_pitch + 8] = d[3];
    }
  }
}

/// Adds the partial sums of the cluster in rank order; each block finishes every `parts`-th (row, tile).
template <int MT, class Config, class Epilogue>
__device__ void reduce_job(const GemmJob& job, int row_tiles, int part, int parts, std::uint32_t partial,
                           const Epilogue& epilogue) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int2 pair = Epilogue::pair(lane);
  for (int item = part + parts * warp; item < job.rows * 2 * MT; item += parts * 8) {
    const int row = item / (2 * MT);
    const int local_tile = item % (2 * MT);
    const std::uint32_t at = partial + (row * Config::partial_pitch + local_tile * 64) * 4;
    float first = 0.0f;
    float second = 0.0f;
#pragma unroll 4
    for (int rank = 0; rank < parts; ++rank) {
      const std::uint32_t remote = ptx::cluster_address(at, rank);
      first += ptx::cluster_load(remote + 4 * pair.x);
      second += ptx::cluster_load(remote + 4 * pair.y);
    }
    if (job.first_tile + local_tile < row_tiles) {
      epilogue.store(job, row, job.first_tile + local_tile, first, second, lane);
    }
  }
}

/// `Work` lists the jobs: `jobs_known_early` (whether without the last kernel's results), `int jobs(N, tiles
/// a job)`, `GemmJob job(int index, N, tiles a job)`, `int row_tiles`, `int column_blocks`.
/// `Epilogue::pair(lane)` names the two of a tile's 64 weight rows whose sums a lane receives in `store(job,
/// row, tile, first, second, lane)`; a whole warp calls it for one row and tile.
template <class Codec, int N, int MT, bool split, class Work, class Epilogue>
__global__ void __launch_bounds__(GemmConfig<Codec, N, MT, split>::threads,
                                  GemmConfig<Codec, N, MT, split>::blocks_an_sm)
    weight_gemm(const __grid_constant__ Work work, const __grid_constant__ Epilogue epilogue, int parts) {
  using Config = GemmConfig<Codec, N, MT, split>;
  extern __shared__ __align__(1024) std::uint8_t shared_base[];
  const GemmShared<Config> shared{shared_base};
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Config::stages; ++stage) {
      ptx::barrier_init(shared.full(stage), 1);
      ptx::barrier_init(shared.empty(stage), 8);
    }
    ptx::barrier_init_fence();
  }
  __syncthreads();

  ptx::let_next_kernel_start();
  if constexpr (!Work::jobs_known_early) ptx::wait_for_last_kernel();
  const int part = split ? ptx::cluster_rank() : 0;
  const int2 range = column_range(work.column_blocks, part, parts);
  const int count = work.jobs(N, 2 * MT);
  std::uint32_t phases = 0;
  if (threadIdx.x >= 256) {
    if constexpr (Config::large) ptx::give_registers<40>();
    if (threadIdx.x < 288) {
      for (int index = blockIdx.x / parts; index < count; index += gridDim.x / parts) {
        load_job<Codec, MT>(work.job(index, N, 2 * MT), work.row_tiles, work.column_blocks, range,
                            index == static_cast<int>(blockIdx.x) / parts, shared, phases);
      }
    }
    __syncwarp();
    if constexpr (split) {
      ptx::cluster_sync();
      ptx::cluster_sync();
    }
    return;
  }
  if constexpr (Config::large) ptx::take_registers<232>();
  for (int index = blockIdx.x / parts; index < count; index += gridDim.x / parts) {
    const GemmJob job = work.job(index, N, 2 * MT);
    float sums[MT][N / 2];
    multiply_job<Codec, N, MT>(range, shared, phases, sums);
    if constexpr (split) {
      stage_partial<N, MT, Config>(reinterpret_cast<float*>(shared_base), sums);
      ptx::cluster_sync();
      reduce_job<MT, Config>(job, work.row_tiles, part, parts, ptx::shared_address(shared_base), epilogue);
      ptx::cluster_sync();
    } else {
      store_job<N, MT, Config>(job, work.row_tiles, shared.exchange(), sums, epilogue);
    }
  }
}

/// Launches over `jobs` jobs (an upper bound when only the device knows the count). With parts > 1 the grid
/// has one cluster of `parts` blocks a job; else at most as many blocks as fit the device at once.
template <class Codec, int N, int MT, bool split, class Work, class Epilogue>
void launch_weight_gemm(const Work& work, const Epilogue& epilogue, int jobs, int parts,
                        cudaStream_t stream) {
  using Config = GemmConfig<Codec, N, MT, split>;
  const auto kernel = weight_gemm<Codec, N, MT, split, Work, Epilogue>;
  static const int multiprocessors = [] {
    int count = 0;
    check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0), "device properties");
    return count;
  }();
  static const cudaError_t prepared =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Config::shared_bytes);
  check(prepared, "matrix kernel: shared memory");
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {static_cast<unsigned>(parts), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = split ? jobs * parts : std::min(jobs, multiprocessors * Config::blocks_an_sm);
  config.blockDim = Config::threads;
  config.dynamicSmemBytes = Config::shared_bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = split ? 2 : 1;
  check(cudaLaunchKernelEx(&config, kernel, work, epilogue, parts), "matrix kernel");
}

}  // namespace thalweg::cuda
