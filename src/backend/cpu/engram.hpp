// Engram: gated n-gram memory added to the residual streams (model specification, section 3.2). Cost: one FP8
// product a row and 24 table rows of 264 bytes read at random.
#pragma once

#include "backend/cpu/context.hpp"
#include "backend/cpu/linear.hpp"
#include "backend/cpu/step_rows.hpp"
#include "model/observer.hpp"

namespace thalweg::backend::cpu {

class Engram {
 public:
  Engram(const Context& context, Linear& linear) : context_(context), linear_(linear) {}

  /// Updates the streams h [rows, S * hidden] of every row outside image spans.
  void run(const model::Layer& layer, const StepRows& rows, Rows& h, model::Observer* observer);

 private:
  void gather(const model::Layer& layer, const StepRows& rows);
  void recent_tokens(const StepRows& rows, std::size_t row, std::int32_t* recent) const;
  void update(const checkpoint::EngramWeights& weights, const float* kv, float* h);

  const Context& context_;
  Linear& linear_;
  std::vector<std::int64_t> table_rows_;  // [rows, columns]
  Rows embedded_;
  Rows rounded_;
  Rows kv_;
};

}  // namespace thalweg::backend::cpu
