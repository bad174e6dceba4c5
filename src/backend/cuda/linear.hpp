// Dense products with packed weights (the linears of a layer, the router gate, the head).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/operand.hpp"
#include "backend/cuda/pack.hpp"

namespace thalweg::cuda {

/// A packed matrix in device memory. With groups > 1 its rows are that many equal blocks, each the weight of
/// its own input (the grouped output projection): block g multiplies operand g.
struct LinearWeights {
  PackedShape shape;
  const std::uint8_t* data = nullptr;
  int groups = 1;
};

/// Operand in device memory (operand.hpp). With groups, operand g follows operand g - 1.
struct OperandView {
  std::uint16_t* data = nullptr;
  int rows = 0;
  int columns = 0;

  int atoms() const { return atom_count(rows); }
};

/// Into how many parts the columns are cut to fill the device: a function of the matrix alone, so that the
/// order of the sums is too.
int column_parts(const PackedShape& shape);

/// Throws UsageError unless every group has a multiple of 256 rows (tiles do not straddle groups).
void check_groups(const LinearWeights& weights);

/// out[row * shape.rows + n] = bf16(sum). FP8 weights; one launch.
void linear(const LinearWeights& weights, const OperandView& x, std::uint16_t* out, cudaStream_t stream);

/// As `linear`, FP8 gate and up projections packed together (`pack_gate_up`), then clamped SwiGLU and
/// Q_fp8_32: channel c of row r of `out` = Q(bf16(silu(min(g, limit)) * clamp(u, -limit, limit))). Model
/// specification 3.7.
void linear_swiglu(const LinearWeights& weights, const OperandView& x, float limit, const OperandView& out,
                   cudaStream_t stream);

/// bf16 weights, fp32 result: the head, the router gate, the compressor.
void linear_float(const LinearWeights& weights, const OperandView& x, float* out, cudaStream_t stream);

}  // namespace thalweg::cuda
