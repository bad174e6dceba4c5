// Products of rows with weight matrices, several at once over all threads.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backend/cpu/context.hpp"
#include "backend/cpu/matrix.hpp"

namespace thalweg::backend::cpu {

/// y[i, n] = sum_k x[i, k] w[n, k] for i < rows. The input is taken as it is.
struct Product {
  Matrix weight;
  const float* x = nullptr;
  std::size_t x_stride = 0;
  std::size_t rows = 0;
  float* y = nullptr;
  std::size_t y_stride = 0;
};

/// Computes products. Results do not depend on the other products, the number of rows or threads.
class Linear {
 public:
  explicit Linear(const Context& context) : context_(context) {}

  /// All products in one parallel loop; outputs must not overlap.
  void run(std::span<const Product> products);
  void run(const Product& product) { run(std::span(&product, 1)); }

  /// Copies rows and rounds them as inputs of FP8/FP4 linears; without that rounding the source itself is
  /// returned.
  const float* quantised(const Rows& source, Rows& copy) {
    return quantised(source.data(), source.rows(), source.width(), copy);
  }
  const float* quantised(const float* source, std::size_t rows, std::size_t width, Rows& copy);

 private:
  const Context& context_;
  std::vector<std::size_t> first_tile_;
  std::vector<std::vector<float>> scratch_;  // per worker
};

}  // namespace thalweg::backend::cpu
