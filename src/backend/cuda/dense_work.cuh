// The jobs of a dense product, and the choice of tile for a number of rows.
#pragma once

#include "backend/cuda/linear.hpp"
#include "backend/cuda/weight_gemm.cuh"

namespace thalweg::cuda {

struct DenseWork {
  static constexpr bool jobs_known_early = true;
  const std::uint8_t* weights;
  const std::uint16_t* operand;
  int row_tiles;
  int column_blocks;
  int rows;
  int tiles_a_group;         // 64-row tiles that share an operand
  std::size_t group_values;  // from one group's operand to the next

  __host__ __device__ int row_parts(int n) const { return (rows + n - 1) / n; }
  __host__ __device__ int jobs(int n, int tiles) const {
    return row_parts(n) * ((row_tiles + tiles - 1) / tiles);
  }
  __device__ GemmJob job(int index, int n, int tiles) const {
    const int parts = row_parts(n);
    const int row = index % parts * n;
    const int tile = index / parts * tiles;
    return {weights,
            operand + tile / tiles_a_group * group_values + static_cast<std::size_t>(row / 8) * 1024,
            atom_count(rows),
            tile,
            row,
            min(n, rows - row)};
  }
};

inline DenseWork dense_work(const LinearWeights& weights, const OperandView& x) {
  check_groups(weights);
  return {weights.data,
          x.data,
          weights.shape.row_tiles(),
          weights.shape.column_blocks(),
          x.rows,
          weights.shape.row_tiles() / weights.groups,
          operand_values(x.rows, x.columns)};
}

/// Estimated time of a dense product in units of one SM's share of HBM for 128 x 128 weights: whole rounds of
/// blocks over the device. `unit` is the time of such a unit with n rows when the SM works on it alone.
inline double dense_cost(const DenseWork& work, int parts, int n, int tiles, int blocks_an_sm, double unit) {
  const int slots = 132 * blocks_an_sm;
  const int rounds = (work.jobs(n, tiles) * parts + slots - 1) / slots;
  return rounds * blocks_an_sm * unit * (work.column_blocks / 2.0 / parts);
}

/// Runs `Codec` over the tile that should take least. The choice does not change the result.
template <class Codec, bool split, class Epilogue>
void launch_dense(const DenseWork& work, const Epilogue& epilogue, int parts, cudaStream_t stream) {
  const auto cost = [&](int n, int tiles, int blocks_an_sm, double unit) {
    return dense_cost(work, parts, n, tiles, split ? 1 : blocks_an_sm, unit);
  };
  const double small = cost(16, 2, GemmConfig<Codec, 16, 1, split>::blocks_an_sm, 1.0);
  const double middle = cost(64, 2, GemmConfig<Codec, 64, 1, split>::blocks_an_sm, 1.2);
  const double wide = cost(128, 2, GemmConfig<Codec, 128, 1, split>::blocks_an_sm, 1.8);
  const double large = cost(128, 4, 1, 3.4);
  const double least = std::min({small, middle, wide, large});
  if (small == least) {
    launch_weight_gemm<Codec, 16, 1, split>(work, epilogue, work.jobs(16, 2), parts, stream);
  } else if (middle == least) {
    launch_weight_gemm<Codec, 64, 1, split>(work, epilogue, work.jobs(64, 2), parts, stream);
  } else if (wide == least) {
    launch_weight_gemm<Codec, 128, 1, split>(work, epilogue, work.jobs(128, 2), parts, stream);
  } else {
    launch_weight_gemm<Codec, 128, 2, split>(work, epilogue, work.jobs(128, 4), parts, stream);
  }
}

}  // namespace thalweg::cuda
