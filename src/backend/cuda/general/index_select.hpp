// The indexer: scores of compressed entries, candidate blocks and the top-k selection of every row (model
// specification, section 3.6). Scores of some rows at a time are kept, never rows x context for a whole
// chunk.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cuda/general/attention.hpp"
#include "backend/cuda/general/cache_memory.hpp"
#include "backend/cuda/general/linear.hpp"
#include "backend/cuda/general/step_arrays.hpp"
#include "backend/cuda/general/weights.hpp"
#include "model/observer.hpp"

namespace thalweg::cuda::general {

class IndexSelect {
 public:
  IndexSelect(const model::Model& model, const DeviceWeights& weights, const CacheMemory& memory)
      : model_(model), weights_(weights), memory_(memory) {}

  /// `latents`: the rows' normed query latents as inputs of FP8 linears; `x`: the normed hidden states.
  /// Leaves the selection of every row, which later layers reuse.
  void run(const model::Layer& layer, const model::StepRows& rows, const StepArrays& arrays,
           const Rows& latents, const Rows& x, model::Observer* observer);

  SelectionView selection() const;

 private:
  void make_queries(const model::Layer& layer, const StepArrays& arrays, const Rows& latents, const Rows& x);
  void count_scores(const model::Layer& layer, const model::StepRows& rows);
  void run_pass(const model::Layer& layer, const StepArrays& arrays, std::size_t first, std::size_t count,
                std::size_t stride);
  void make_candidates(std::size_t first, std::size_t count, std::size_t stride);
  void observe(const model::Layer& layer, std::size_t first, std::size_t count, std::size_t stride,
               model::Observer& observer) const;

  const model::Model& model_;
  const DeviceWeights& weights_;
  const CacheMemory& memory_;
  Rows queries_;  // [rows, heads * width]
  Rows head_weights_;
  Buffer<float> scores_;                        // of the rows of one pass
  Buffer<float> maxima_;                        // of blocks of entries
  std::vector<std::int32_t> visible_;           // entries each row may see
  std::vector<std::int32_t> scored_;            // entries scored: those, or the ones in its candidates
  std::vector<std::int32_t> blocks_;            // candidate blocks there are
  std::vector<std::int32_t> candidate_counts_;  // candidates of each row; 0: all
  Buffer<std::int32_t> device_scored_;
  Buffer<std::int32_t> device_blocks_;
  Buffer<std::int32_t> device_candidate_counts_;
  Buffer<std::int32_t> candidates_;  // [rows, candidate_topk_blocks]
  Buffer<std::int32_t> found_;
  Buffer<std::int32_t> entries_;  // [rows, topk]
  Buffer<std::int32_t> counts_;
};

}  // namespace thalweg::cuda::general
