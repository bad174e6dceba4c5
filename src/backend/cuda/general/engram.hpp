// Engram: gated n-gram memory added to the residual streams (model specification, section 3.2). The table
// stays in host memory; the few rows a step needs are gathered there and copied.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cuda/general/linear.hpp"
#include "backend/cuda/general/step_arrays.hpp"
#include "backend/cuda/general/weights.hpp"
#include "model/observer.hpp"

namespace thalweg::cuda::general {

class Engram {
 public:
  Engram(const model::Model& model, const DeviceWeights& weights, bool round_inputs)
      : model_(model), weights_(weights), round_inputs_(round_inputs) {}

  /// Updates the streams h [rows, S * hidden] of every row outside image spans.
  void run(const model::Layer& layer, const model::StepRows& rows, const StepArrays& arrays, const Rows& h,
           model::Observer* observer);

 private:
  void gather(const model::Layer& layer, const model::StepRows& rows);

  const model::Model& model_;
  const DeviceWeights& weights_;
  bool round_inputs_;
  std::vector<std::int64_t> table_rows_;  // [rows, columns]
  std::vector<float> gathered_;
  Rows embedded_;
  Rows kv_;
};

}  // namespace thalweg::cuda::general
