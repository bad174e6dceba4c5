// What every operation of the CPU backend may use, and small helpers on rows of floats.
#pragma once

#include <cstddef>
#include <vector>

#include "base/thread_pool.hpp"
#include "model/model.hpp"
#include "numeric/bf16.hpp"

namespace thalweg::backend::cpu {

/// Rounding rules of a precision (model specification, section 4; docs/numerics.md).
struct Rounding {
  bool linear_inputs = false;  ///< inputs of FP8/FP4 linears are rounded to E4M3 in groups of 32
  model::CacheFormats formats;

  explicit Rounding(model::Precision precision)
      : linear_inputs(precision == model::Precision::reference), formats(model::cache_formats(precision)) {}
};

/// Shared by all operations of one backend. The pool runs one loop at a time.
struct Context {
  const model::Model& model;
  ThreadPool& pool;
  Rounding rounding;
};

/// Row-major floats that only ever grow, so that steps of a size seen before allocate nothing.
class Rows {
 public:
  /// Makes room for rows x width; contents are not kept.
  void resize(std::size_t rows, std::size_t width) {
    width_ = width;
    rows_ = rows;
    if (rows * width > values_.size()) values_.resize(rows * width);
  }
  float* row(std::size_t i) { return values_.data() + i * width_; }
  const float* row(std::size_t i) const { return values_.data() + i * width_; }
  float* data() { return values_.data(); }
  const float* data() const { return values_.data(); }
  std::size_t width() const { return width_; }
  std::size_t rows() const { return rows_; }
  std::size_t size() const { return rows_ * width_; }

 private:
  std::vector<float> values_;
  std::size_t rows_ = 0;
  std::size_t width_ = 0;
};

/// Sum of squares with 32 running sums, so that it does not depend on how the compiler vectorises.
inline float sum_of_squares(const float* x, std::size_t n) {
  float sums[32] = {};
  for (std::size_t i = 0; i + 32 <= n; i += 32) {
    for (std::size_t k = 0; k < 32; ++k) sums[k] += x[i + k] * x[i + k];
  }
  for (std::size_t width = 16; width > 0; width /= 2) {
    for (std::size_t k = 0; k < width; ++k) sums[k] += sums[k + width];
  }
  return sums[0];
}

}  // namespace thalweg::backend::cpu
