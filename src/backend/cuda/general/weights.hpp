// The checkpoint in device memory, in its own formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "backend/cuda/device.hpp"
#include "backend/cuda/general/matrix.hpp"
#include "checkpoint/weights.hpp"
#include "model/model.hpp"

namespace thalweg::cuda::general {

/// Device copies of a model's tensors, found by the tensor's place in host memory. Engram tables stay on the
/// host: only a few of their rows are read.
class DeviceWeights {
 public:
  /// Copies everything. Throws WorkError if the device has not enough memory.
  explicit DeviceWeights(const model::Model& model);

  Matrix of(const checkpoint::Bf16Matrix& m) const;
  Matrix of(const checkpoint::Fp8Matrix& m) const;
  Matrix of(const checkpoint::Fp4Matrix& m) const;
  /// A float matrix of `rows` rows.
  Matrix of(checkpoint::F32Vector values, std::size_t rows) const;
  const std::uint16_t* of(checkpoint::Bf16Vector values) const;
  const float* of(checkpoint::F32Vector values) const;
  /// Gate, up and down projection of every expert, [experts, 3], in device memory.
  const Matrix* experts(const checkpoint::MoeWeights& weights) const;
  std::size_t bytes() const { return bytes_; }

 private:
  void copy(const void* host, std::size_t size);
  const void* find(const void* host) const;
  void copy(const checkpoint::Bf16Matrix& m);
  void copy(const checkpoint::Fp8Matrix& m);
  void copy(const checkpoint::MixWeights& mix);
  void copy(const checkpoint::AttentionWeights& weights);
  void copy(const checkpoint::MoeWeights& weights);
  void copy(const checkpoint::LayerWeights& weights);

  std::vector<DeviceBytes> blocks_;
  std::size_t used_ = 0;  ///< of the last block
  std::size_t bytes_ = 0;
  std::unordered_map<const void*, const void*> places_;
  std::unordered_map<const void*, DeviceArray<Matrix>> experts_;  ///< by the place of the list of experts
};

}  // namespace thalweg::cuda::general
