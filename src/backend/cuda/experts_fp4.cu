// Both products of the routed experts on FP4 weights.
//
// Roofline: 18.8 MB an expert that is hit / HBM rate (48 experts: 199 us) up to about 100 rows an expert.
// Schedule and conversion: weight_gemm.cuh. Blocks are persistent and walk (tile of an expert's rows, 128 or
// 256 weight rows) in an order that keeps neighbours on one expert, whose activations then stay in L2.
#include "backend/cuda/epilogue.cuh"
#include "backend/cuda/experts.hpp"
#include "backend/cuda/weight_gemm.cuh"

namespace thalweg::cuda {
namespace {

struct ExpertWork {
  static constexpr bool jobs_known_early = false;  // the plan comes from the router
  const std::uint8_t* weights;
  std::size_t expert_bytes;
  const std::uint16_t* operand;
  int operand_atoms;
  int row_tiles;
  int column_blocks;
  const ExpertTile* tiles;
  const int* tile_count;

  __device__ int jobs(int, int tiles_a_job) const {
    return *tile_count * ((row_tiles + tiles_a_job - 1) / tiles_a_job);
  }
  __device__ GemmJob job(int index, int, int tiles_a_job) const {
    const int jobs_a_tile = (row_tiles + tiles_a_job - 1) / tiles_a_job;
    const ExpertTile tile = tiles[index / jobs_a_tile];
    return {weights + tile.expert * expert_bytes,
            operand + static_cast<std::size_t>(tile.row / 8) * 1024,
            operand_atoms,
            index % jobs_a_tile * tiles_a_job,
            tile.row,
            tile.rows};
  }
};

template <class Epilogue>
void launch(const ExpertPlan& plan, const PackedShape& shape, const std::uint8_t* weights,
            const OperandView& x, const Epilogue& epilogue, cudaStream_t stream) {
  const ExpertWork work{weights,           shape.bytes(),         x.data,       x.atoms(),
                        shape.row_tiles(), shape.column_blocks(), plan.tiles(), plan.tile_count()};
  const int jobs = plan.max_tiles() * ((shape.row_tiles() + 1) / 2);
  switch (plan.many_rows() ? 0 : plan.tile_rows()) {
    case 16:
      launch_weight_gemm<Fp4Codec, 16, 1, false>(work, epilogue, jobs, 1, stream);
      break;
    case 32:
      launch_weight_gemm<Fp4Codec, 32, 1, false>(work, epilogue, jobs, 1, stream);
      break;
    case 64:
      launch_weight_gemm<Fp4Codec, 64, 1, false>(work, epilogue, jobs, 1, stream);
      break;
    case 128:
      launch_weight_gemm<Fp4Codec, 128, 1, false>(work, epilogue, jobs, 1, stream);
      break;
    default:  // 128 rows and twice the weights a block
      launch_weight_gemm<Fp4Codec, 128, 2, false>(work, epilogue, jobs, 1, stream);
  }
}

}  // namespace

void expert_gate_up(const ExpertPlan& plan, const PackedShape& shape, const std::uint8_t* weights,
                    const OperandView& sorted, const float* routing_weights, float limit,
                    const OperandView& out, cudaStream_t stream) {
  launch(plan, shape, weights, sorted,
         StoreSwiglu{out.data, out.atoms(), limit, routing_weights, plan.entry_of()}, stream);
}

void expert_down(const ExpertPlan& plan, const PackedShape& shape, const std::uint8_t* weights,
                 const OperandView& hidden, std::uint16_t* out, cudaStream_t stream) {
  launch(plan, shape, weights, hidden, StoreBf16{out, shape.rows}, stream);
}

}  // namespace thalweg::cuda
