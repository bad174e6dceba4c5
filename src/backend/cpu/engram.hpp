// Engram: gated n-gram memory added to the residual streams (model specification, section 3.2). Cost: one FP8
// product a row and 24 table rows of 264 bytes read at random.
#pragma once

#include "backend/cpu/context.hpp"
#include "backend/cpu/linear.hpp"
#include "model/observer.hpp"
#include "model/step_rows.hpp"

namespace thalweg::backend::cpu {

class Engram {
 public:
  Engram(const Context& context, Linear& linear) : context_(context), linear_(linear) {}

  /// Updates the streams h [rows, S * hidden] of every row outside image spans.
  void run(const model::Layer& layer, const model::StepRows& rows, Rows& h, model::Observer* observer);

 private:
  void gather(const model::Layer& layer, const model::StepRows& rows);
  void update(const checkpoint::EngramWeights& weights, const float* kv, float* h);

  const Context& context_;
  Linear& linear_;
  std::vector<std::int64_t> table_rows_;  // [rows, columns]
  Rows embedded_;
  Rows rounded_;
  Rows kv_;
};

}  // namespace thalweg::backend::cpu
