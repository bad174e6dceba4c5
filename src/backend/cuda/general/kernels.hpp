// Launches of the kernels that one operation alone uses; each is one or a few launches on the default stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/general/cache_rows.hpp"
#include "backend/cuda/general/matrix.hpp"
#include "backend/cuda/general/rows.hpp"

namespace thalweg::cuda::general {

// Compressor: latents [count, width] of entries, from two tokens each or from one, and the rings.
void pool_pairs(const RawRings& rings, const Entry* entries, std::size_t count, const Rows& values,
                const Rows& scores, float* latents);
void take_entries(const Entry* entries, std::size_t count, const Rows& values, float* latents);
void keep_raw(const RawRings& rings, const StepRow* rows, const Rows& values, const Rows& scores);

// Indexer.
struct ScoreInput {
  const StepRow* rows;
  const std::int32_t* blocks;
  PageRows keys;
  const float* queries;       // [rows, heads * width]
  const float* head_weights;  // [rows, heads]
  int heads;
  const std::int32_t* scored;            // [rows]
  const std::int32_t* candidates;        // [rows, candidate_stride]; null: all entries
  const std::int32_t* candidate_counts;  // [rows]; 0: all entries
  int candidate_stride;
  int candidate_size;
};

/// scores[row - first, place] for the rows from `first` on, `stride` apart.
void score_entries(const ScoreInput& input, std::size_t first, std::size_t count, std::size_t stride,
                   float* scores);
void scale_values(const Rows& rows, float scale);
/// The largest score of every block of `size` entries; the newest block counts as the largest of all.
void block_maxima(const float* scores, std::size_t rows, std::size_t stride, const std::int32_t* scored,
                  int size, const std::int32_t* blocks, std::size_t blocks_stride, float* maxima);
/// Places among the scored entries -> entries, in place.
void places_to_entries(const ScoreInput& input, std::size_t first, std::size_t count, int topk,
                       const std::int32_t* counts, std::int32_t* entries);
/// For each row of float32 `scores` (rows `stride` apart) the `k` largest of its first counts[row], equal
/// ones by lower place: out[row, k] places in ascending order; found[row] how many. Device memory.
void select_best(const float* scores, std::size_t rows, std::size_t stride, const std::int32_t* counts, int k,
                 std::int32_t* out, std::int32_t* found);

// Experts.
struct ExpertGroups {
  std::int32_t* starts;    ///< [experts + 1] first place of each expert
  std::int32_t* pairs;     ///< by place: index in the choice
  std::int32_t* sources;   ///< by place: row
  std::int32_t* place_of;  ///< by index in the choice
};
/// Sorts the choice [rows, count] by expert; `scratch` [2, experts].
void group_by_expert(const std::int32_t* chosen, std::size_t places, int count, int experts,
                     std::int32_t* scratch, const ExpertGroups& groups);
/// gate <- weight * silu(min(gate, limit)) * clamp(up, -limit, limit), the weight of row i being
/// weights[pairs[i]]; 1 without pairs.
void swiglu_rows(const Rows& gate, const Rows& up, float limit, const std::int32_t* pairs,
                 const float* weights);
/// o += the rows of the chosen experts, in the order of the choice.
void add_experts(const Rows& down, const std::int32_t* place_of, int count, const Rows& o);

// Engram.
struct EngramUpdate {
  Matrix q_weight;  ///< [streams, hidden] bf16
  Matrix k_weight;
  float eps;
};
/// The gated update of every row outside image spans; kv [rows, (streams + 1) * hidden].
void update_streams(const EngramUpdate& update, const Rows& kv, const std::uint8_t* image, const Rows& h);

// Draft: out[sequence, step] = w . [collapsed state ; Markov embedding].
void draft_confidence(const std::uint16_t* weight, const Rows& collapsed, const Rows& markov, int block,
                      int step, float* out);

}  // namespace thalweg::cuda::general
