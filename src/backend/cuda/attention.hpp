// Sparse attention over packed caches: decode, verification and prefill are the same call over a list of
// query rows.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/cache_rows.hpp"
#include "backend/cuda/linear.hpp"

namespace thalweg::cuda {

/// One query row, in device memory.
struct AttentionRow {
  int sequence;      ///< row of the page tables
  int slot;          ///< window slot
  int window_first;  ///< first position of the window keys
  int window_count;  ///< at most 192
  int selected;      ///< entries of its selection, at most 512
};

struct AttentionInput {
  const std::uint16_t* q = nullptr;    ///< [rows, 64, 512] bf16, rotated
  const AttentionRow* rows = nullptr;  ///< [rows]
  int row_count = 0;
  WindowCache window;
  CompressedCache compressed;      ///< ignored when selection is null
  const int* selection = nullptr;  ///< [rows, 512] entries, the first `selected` of each; null: window only
  const float* sinks = nullptr;    ///< [64]
  const float2* rotations = nullptr;  ///< [rows, 32] cosine and sine of the row's position
};

/// o = softmax(q k / sqrt(512), with the head's sink in the denominator) k over both key sets, in bf16, its
/// last 64 channels rotated back (model specification, 3.4). Row r, group g (of 8 heads): row r of operand g
/// of `out`; 4096 columns, head after head. Operand g follows operand g - 1. One launch. Keys are cut at
/// fixed places and the parts added in a fixed order: a row's result does not depend on the other rows.
void sparse_attention(const AttentionInput& input, const OperandView& out, cudaStream_t stream);

}  // namespace thalweg::cuda
