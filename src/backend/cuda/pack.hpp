// Checkpoint matrices -> packed matrices (codec.cuh): the same bits in the order of the matrix instruction.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace thalweg::cuda {

enum class WeightFormat { fp8, fp4, bf16 };

/// Shape of a packed matrix. Rows are padded to whole tiles of 64, columns to a multiple of 128, both with
/// zeros.
struct PackedShape {
  WeightFormat format;
  int rows;
  int columns;

  int row_tiles() const { return (rows + 127) / 128 * 2; }         ///< of 64 rows
  int column_blocks() const { return (columns + 127) / 128 * 2; }  ///< of 64 columns
  std::size_t block_bytes() const {
    return format == WeightFormat::fp8 ? 4112 : format == WeightFormat::fp4 ? 2176 : 8192;
  }
  std::size_t bytes() const { return block_bytes() * row_tiles() * column_blocks(); }
};

/// Checkpoint tensors in device memory, as the checkpoint specification (section 4) lays them out.
struct SourceMatrix {
  const std::uint8_t* codes = nullptr;  ///< E4M3 [rows, columns], E2M1 pairs [rows, columns / 2] or bf16
  const std::uint8_t* scales =
      nullptr;  ///< E8M0 [ceil(rows/32), ceil(columns/32)] or, for FP4, [rows, columns/32]
};

/// Packs `source` into `target` (shape.bytes() bytes, 16-byte aligned). `out_of_range` (one int in device
/// memory, may be null for bf16) is set to 1 if a scale is too large for the kernels: over 2^7 for FP8, over
/// 2^1 for FP4.
void pack(const PackedShape& shape, const SourceMatrix& source, std::uint8_t* target, int* out_of_range,
          cudaStream_t stream);

/// Packs the gate (w1) and up (w3) projections of an expert, `shape.rows` rows in all (half of them each, a
/// multiple of 32), so that one tile of 64 rows holds 32 channels of both: rows 16w + i and 16w + 8 + i (w <
/// 4, i < 8) of tile r are channel 32r + 8w + i of gate and up.
void pack_gate_up(const PackedShape& shape, const SourceMatrix& gate, const SourceMatrix& up,
                  std::uint8_t* target, int* out_of_range, cudaStream_t stream);

}  // namespace thalweg::cuda
