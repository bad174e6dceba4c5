// Mixture of experts (model specification, section 3.7): router, routed experts with FP4 weights, one shared
// expert. Grouping by expert happens on the device, without a word to the host.
#pragma once

#include <cstdint>

#include "backend/cuda/general/linear.hpp"
#include "backend/cuda/general/step_arrays.hpp"
#include "backend/cuda/general/weights.hpp"
#include "model/observer.hpp"

namespace thalweg::cuda::general {

class Experts {
 public:
  Experts(const model::Model& model, const DeviceWeights& weights, bool round_inputs)
      : model_(model), weights_(weights), round_inputs_(round_inputs) {}

  /// o = MoE(x), `count` routed experts a row.
  void run(const model::Layer& layer, int count, const StepArrays& arrays, const Rows& x, Rows& o,
           model::Observer* observer);

 private:
  void route_rows(const model::Layer& layer, int count, const StepArrays& arrays, const Rows& x,
                  model::Observer* observer);
  void group_rows(int experts, std::size_t places, int count);
  void activate(const Rows& gate, const Rows& up, const std::int32_t* pairs);

  const model::Model& model_;
  const DeviceWeights& weights_;
  bool round_inputs_;
  Rows logits_;
  Buffer<std::int32_t> chosen_;    // [rows, count]
  Buffer<float> chosen_weights_;   // [rows, count]
  Buffer<std::int32_t> starts_;    // [experts + 1] first place of each expert
  Buffer<std::int32_t> next_;      // [2, experts] scratch
  Buffer<std::int32_t> pairs_;     // by place: index in `chosen_`
  Buffer<std::int32_t> sources_;   // by place: row
  Buffer<std::int32_t> place_of_;  // by index in `chosen_`
  Rows inputs_;
  Rows gate_;
  Rows up_;
  Rows down_;
  Rows shared_gate_;
  Rows shared_up_;
};

}  // namespace thalweg::cuda::general
