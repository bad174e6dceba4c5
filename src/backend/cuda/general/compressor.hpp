// Compressed KV and index keys of a KV-source layer (model specification, sections 3.5 and 3.6).
#pragma once

#include <vector>

#include "backend/cuda/general/cache_memory.hpp"
#include "backend/cuda/general/linear.hpp"
#include "backend/cuda/general/step_arrays.hpp"
#include "backend/cuda/general/weights.hpp"
#include "model/observer.hpp"

namespace thalweg::cuda::general {

class Compressor {
 public:
  Compressor(const model::Model& model, const DeviceWeights& weights, const CacheMemory& memory)
      : model_(model), weights_(weights), memory_(memory) {}

  /// Feeds all rows' normed hidden states `x`; writes every entry that they complete into the pages, and what
  /// an incomplete group needs later into the compressor rings.
  void run(const model::Layer& layer, const model::StepRows& rows, const StepArrays& arrays, const Rows& x,
           model::Observer* observer);

 private:
  void list_entries(int ratio, const model::StepRows& rows);
  void pool(const model::Layer& layer, const StepArrays& arrays);
  void store(const model::Layer& layer, const StepArrays& arrays, model::Observer* observer);

  const model::Model& model_;
  const DeviceWeights& weights_;
  const CacheMemory& memory_;
  std::vector<Entry> host_entries_;
  std::vector<std::int64_t> host_positions_;
  Buffer<Entry> entries_;
  Buffer<std::int64_t> positions_;
  Buffer<float2> rotations_;
  Rows values_;   // wkv x of every row
  Rows scores_;   // wgate x of every row, ratio 2
  Rows latents_;  // of every completed entry
  Rows keys_;
};

}  // namespace thalweg::cuda::general
