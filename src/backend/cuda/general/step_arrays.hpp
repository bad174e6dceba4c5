// The rows of a step as the kernels see them.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cuda/general/cache_rows.hpp"
#include "backend/cuda/general/rows.hpp"
#include "model/model.hpp"
#include "model/step_rows.hpp"

namespace thalweg::cuda::general {

/// Device copies of what a step says about its rows; made anew when rows are dropped.
class StepArrays {
 public:
  explicit StepArrays(const model::Model& model);

  /// Rows and, at the start of a step, block tables.
  void update(const model::StepRows& rows);

  const StepRow* rows() const { return rows_.data(); }
  const std::int32_t* tokens() const { return tokens_.data(); }
  const std::uint8_t* image() const { return image_.data(); }
  const std::int32_t* blocks() const { return blocks_.data(); }
  /// [rows, pairs] of the rows' positions.
  const float2* rotations(bool compressed) const { return compressed ? compressed_.data() : plain_.data(); }
  const float* frequencies(bool compressed) const {
    return compressed ? compressed_frequencies_.data() : plain_frequencies_.data();
  }
  int pairs() const { return pairs_; }

 private:
  int pairs_;
  DeviceArray<float> plain_frequencies_;
  DeviceArray<float> compressed_frequencies_;
  Buffer<StepRow> rows_;
  Buffer<std::int32_t> tokens_;
  Buffer<std::uint8_t> image_;
  Buffer<std::int32_t> blocks_;
  Buffer<std::int64_t> positions_;
  Buffer<float2> plain_;
  Buffer<float2> compressed_;
  std::vector<StepRow> host_rows_;
  std::vector<std::int32_t> host_tokens_;
  std::vector<std::uint8_t> host_image_;
  std::vector<std::int64_t> host_positions_;
};

}  // namespace thalweg::cuda::general
