#include "backend/cpu/linear.hpp"

#include <algorithm>
#include <cstring>

#include "backend/cpu/gemm_kernels.hpp"
#include "numeric/block_formats.hpp"

namespace thalweg::backend::cpu {
namespace {

constexpr std::size_t kTile = 32;  // output columns of one unit of work

// Work below this many multiply-adds is not worth waking a thread for.
constexpr std::size_t kSmall = 16 * 1024;

}  // namespace

void Linear::run(std::span<const Product> products) {
  first_tile_.clear();
  std::size_t tiles = 0;
  std::size_t work = 0;
  std::size_t columns = 32;
  for (const Product& product : products) {
    first_tile_.push_back(tiles);
    if (product.rows == 0) continue;
    tiles += (product.weight.rows + kTile - 1) / kTile;
    work += product.weight.rows * product.weight.cols * product.rows;
    columns = std::max(columns, product.weight.cols);
  }
  scratch_.resize(context_.pool.size());
  const auto body = [&](std::size_t begin, std::size_t end, std::size_t worker) {
    std::vector<float>& scratch = scratch_[worker];
    if (scratch.size() < gemm_scratch(columns)) scratch.resize(gemm_scratch(columns));
    std::size_t at =
        std::upper_bound(first_tile_.begin(), first_tile_.end(), begin) - first_tile_.begin() - 1;
    for (std::size_t tile = begin; tile < end; ++tile) {
      while (at + 1 < products.size() && first_tile_[at + 1] <= tile) ++at;
      const Product& p = products[at];
      const std::size_t first = (tile - first_tile_[at]) * kTile;
      const std::size_t last = std::min(first + kTile, p.weight.rows);
      gemm_rows(p.weight, first, last, p.x, p.x_stride, p.rows, p.y, p.y_stride, scratch.data());
    }
  };
  const std::size_t per_tile = std::max<std::size_t>(1, work / std::max<std::size_t>(tiles, 1));
  context_.pool.parallel_for(tiles, std::max<std::size_t>(1, kSmall / per_tile), body);
}

const float* Linear::quantised(const float* source, std::size_t rows, std::size_t width, Rows& copy) {
  if (!context_.rounding.linear_inputs) return source;
  copy.resize(rows, width);
  context_.pool.parallel_for(rows, std::max<std::size_t>(1, 4096 / width),
                             [&](std::size_t begin, std::size_t end, std::size_t) {
                               for (std::size_t i = begin; i < end; ++i) {
                                 std::memcpy(copy.row(i), source + i * width, width * sizeof(float));
                                 numeric::round_row(numeric::RowFormat::fp8_32, {copy.row(i), width});
                               }
                             });
  return copy.data();
}

}  // namespace thalweg::backend::cpu
