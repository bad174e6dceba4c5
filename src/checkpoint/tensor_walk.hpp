// The one list of a checkpoint's tensors: their names, types and shapes, and where each belongs in `Weights`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/config.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/weights.hpp"

namespace thalweg::checkpoint {

/// What the walk asks for each tensor.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// The address of the tensor's data, aligned for its type. A source that only wants the list returns
  /// nullptr.
  virtual const std::byte* tensor(const std::string& name, DType dtype, std::vector<std::int64_t> shape) = 0;
};

/// Asks `source` for every tensor of a checkpoint (checkpoint specification, section 3), in a fixed order,
/// and returns the weights that point to what it answered. Tensors of the vision tower and the aligner are
/// asked for, not returned.
Weights walk_tensors(const ModelConfig& config, TensorSource& source);

}  // namespace thalweg::checkpoint
