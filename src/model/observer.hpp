// Watching the intermediates of a forward pass, for comparison with other implementations. Costs nothing when
// absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace thalweg::model {

/// Receives every named intermediate as the walk computes it. `layer` counts backbone layers from 0 and draft
/// stages from `layers`; -1 for values outside the layers. Called from the thread that runs the step.
class Observer {
 public:
  virtual ~Observer() = default;
  /// `values` is [rows, shape...]; it may be changed in place to continue from other values.
  virtual void floats(int layer, const char* name, std::span<float> values, std::size_t rows,
                      std::initializer_list<std::size_t> shape) = 0;
  virtual void integers(int layer, const char* name, std::span<const std::int64_t> values, std::size_t rows,
                        std::size_t width) = 0;
};

}  // namespace thalweg::model
