// The routed experts of a layer: tokens are sorted by expert, both products run over the experts that are
// hit, and the rows go back to their tokens.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device.hpp"
#include "backend/cuda/linear.hpp"

namespace thalweg::cuda {

/// Up to `rows` sorted rows of one expert; what a block of the matrix kernel works on.
struct ExpertTile {
  int expert;
  int row;  ///< first sorted row, a multiple of 8
  int rows;
};

/// The order of a step's (token, slot) entries by expert. Each expert's rows start at a multiple of 8; which
/// of an expert's rows an entry gets is not fixed, and no result depends on it. Buffers are for at most
/// `max_tokens` tokens.
class ExpertPlan {
 public:
  ExpertPlan(int max_tokens, int experts_a_token, int experts);

  /// Sorts. `ids` [tokens, experts_a_token] in device memory: local expert index, or -1 for an expert of
  /// another rank.
  void sort(const int* ids, int tokens, cudaStream_t stream);

  int tokens() const { return tokens_; }
  int experts_a_token() const { return experts_a_token_; }
  int experts() const { return experts_; }
  /// Sorted rows to make room for, paddings included: a multiple of 8 that depends on `tokens` alone.
  int row_capacity(int tokens) const;
  int row_capacity() const { return row_capacity(tokens_); }
  /// Rows of a tile of the current step: the number a matrix kernel is chosen by.
  int tile_rows() const { return tile_rows_; }
  /// Whether experts have several full tiles of rows on average.
  bool many_rows() const { return many_rows_; }
  int max_tiles() const;

  const int* row_of() const { return row_of_.data(); }      ///< [tokens, slots] sorted row, -1: not here
  const int* entry_of() const { return entry_of_.data(); }  ///< [rows] token * slots + slot, -1: padding
  const ExpertTile* tiles() const { return tiles_.data(); }
  const int* tile_count() const { return tile_count_.data(); }

 private:
  int experts_a_token_;
  int experts_;
  int tokens_ = 0;
  int tile_rows_ = 16;
  bool many_rows_ = false;
  DeviceArray<int> row_of_;
  DeviceArray<int> entry_of_;
  DeviceArray<ExpertTile> tiles_;
  DeviceArray<int> tile_count_;
};

/// Copies the tokens' operand rows to their sorted places. `sorted` has plan.row_capacity() rows.
void gather_expert_rows(const ExpertPlan& plan, const OperandView& x, const OperandView& sorted,
                        cudaStream_t stream);

/// First product: gate and up (packed together, FP4, one packed matrix an expert, contiguous), clamped
/// SwiGLU, times `routing_weights` [tokens, slots], rounded to bf16, Q_fp8_32. Model specification 3.7.
void expert_gate_up(const ExpertPlan& plan, const PackedShape& shape, const std::uint8_t* weights,
                    const OperandView& sorted, const float* routing_weights, float limit,
                    const OperandView& out, cudaStream_t stream);

/// Second product: out[row, shape.rows] = bf16(sum) for every sorted row.
void expert_down(const ExpertPlan& plan, const PackedShape& shape, const std::uint8_t* weights,
                 const OperandView& hidden, std::uint16_t* out, cudaStream_t stream);

/// out[token] = bf16(sum over slots, in slot order, of the expert rows + shared[token]), fp32 inside.
/// `shared` may be null. `width` a multiple of 8.
void combine_experts(const ExpertPlan& plan, const std::uint16_t* expert_rows, const std::uint16_t* shared,
                     int width, std::uint16_t* out, cudaStream_t stream);

}  // namespace thalweg::cuda
