// The sparse-attention indexer: scores of query tokens against packed FP4 keys, and the selection of the
// best.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/linear.hpp"

namespace thalweg::cuda {

constexpr int index_heads = 32;
constexpr int index_width = 128;
/// Keys are stored in units of 8: 512 bytes of codes in the order of the matrix instruction
/// (Fp4Codec::fp4_half for 8 rows: [column half][lane][two words]), then 4 UE8M0 scales a key.
constexpr int index_unit_keys = 8;
constexpr int index_unit_bytes = 544;

/// A source layer's index keys in pages: key j of a sequence is key j % page_keys of page table[j /
/// page_keys]; page p starts at base + p * page_stride (16-byte aligned). `page_keys` is a multiple of 64.
struct IndexKeys {
  std::uint8_t* base = nullptr;
  std::size_t page_stride = 0;
  int page_keys = 64;
  const int* tables = nullptr;
  int table_stride = 0;
};

/// Consecutive query tokens of one sequence, in device memory.
struct IndexRow {
  int sequence;     ///< row of the page tables
  int first_token;  ///< row of queries, weights and scores
  int tokens;       ///< at most 8
  int keys;         ///< keys to score: those visible to the last of the tokens
};

struct IndexInput {
  const std::uint16_t* queries =
      nullptr;                     ///< operand of tokens * 32 rows, 128 columns: Q_mxfp4_32 of each head
  const float* weights = nullptr;  ///< [tokens, 32]
  const IndexRow* rows = nullptr;  ///< [row_count]
  int row_count = 0;
  int max_tokens = 1;  ///< of any row
  int max_keys = 0;    ///< of any row; bounds the launch
  IndexKeys keys;
  /// Candidates: scores only these blocks of 8 keys, [tokens, candidate_stride] ascending; then every row has
  /// one token and `keys` counts 8 a candidate. Null: all keys.
  const int* candidates = nullptr;
  int candidate_stride = 0;
  int score_stride = 0;                   ///< of `scores`; at least the keys rounded up to a multiple of 128
  std::uint16_t* block_maxima = nullptr;  ///< [tokens, score_stride / 8] bf16; null: not wanted
  const int* visible = nullptr;           ///< [tokens] keys visible to each token; needed for block maxima
};

/// scores[token, j] = bf16(sum over heads of weight * max(0, query . key)), fp32 inside (model
/// specification, 3.6). Scores beyond a row's keys are not defined.
void index_scores(const IndexInput& input, std::uint16_t* scores, cudaStream_t stream);

/// For each row of bf16 `scores` [rows, stride] the `k` largest of its first counts[row], ties to the lower
/// index: out[row, k] indices in ascending order, -1 where fewer exist; found[row] how many (may be null).
/// Index forced[row] is always among them (`forced` may be null; -1: none). Throws UsageError beyond 2^20
/// scores a row, k = 2048, or a stride that is no multiple of 8.
void select_largest(const std::uint16_t* scores, int rows, int stride, const int* counts, const int* forced,
                    int k, int* out, int* found, cudaStream_t stream);

}  // namespace thalweg::cuda
