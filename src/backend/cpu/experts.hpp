// Mixture of experts (model specification, section 3.7): router, routed experts with FP4 weights, one shared
// expert. Cost at few rows: reading the weights of the chosen experts; at many rows the products themselves.
#pragma once

#include "backend/cpu/context.hpp"
#include "backend/cpu/linear.hpp"
#include "model/observer.hpp"
#include "model/step_rows.hpp"

namespace thalweg::backend::cpu {

/// The experts of one row: the `count` largest of scores + bias, best first, ties to the lower id; weights
/// are the unbiased scores, normalised and scaled. `scores` are router logits on entry.
void route(float* scores, std::size_t experts, const float* bias, std::size_t count, float scaling,
           std::int32_t* chosen, float* weights);

/// gate[d] <- weight * silu(min(gate[d], limit)) * clamp(up[d], -limit, limit) for d < n.
void swiglu(float* gate, const float* up, std::size_t n, float limit, float weight);

class Experts {
 public:
  Experts(const Context& context, Linear& linear) : context_(context), linear_(linear) {}

  /// o = MoE(x), `count` routed experts a row.
  void run(const model::Layer& layer, int count, const model::StepRows& rows, const Rows& x, Rows& o,
           model::Observer* observer);

 private:
  void route_rows(const model::Layer& layer, std::size_t count, const model::StepRows& rows, const Rows& x,
                  model::Observer* observer);
  void group_rows(const model::Layer& layer, std::size_t count, const Rows& x, const float* inputs);
  void activate(Rows& gate, const Rows& up, const std::vector<float>* weights, const float*& rounded,
                Rows& copy);
  void combine(std::size_t count, Rows& o);

  const Context& context_;
  Linear& linear_;
  Rows scores_;
  std::vector<std::int32_t> chosen_;       // [rows, count]
  std::vector<float> chosen_weights_;      // [rows, count]
  std::vector<std::int32_t> place_;        // [rows, count] -> row in the grouped buffers
  std::vector<float> place_weights_;       // by grouped row
  std::vector<std::size_t> expert_start_;  // per expert, first grouped row; one more at the end
  std::vector<Product> products_;
  Rows inputs_;
  Rows grouped_;
  Rows gate_;
  Rows up_;
  Rows down_;
  Rows shared_gate_;
  Rows shared_up_;
  Rows rounded_;
  Rows shared_rounded_;
};

}  // namespace thalweg::backend::cpu
