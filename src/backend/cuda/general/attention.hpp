// Sparse attention with sinks (model specification, section 3.4) in float32. Keys of some rows at a time are
// unpacked to scratch memory and shared by all heads of a row.
#pragma once

#include <cstdint>

#include "backend/cuda/general/cache_rows.hpp"

namespace thalweg::cuda::general {

/// Selected entries of every row, ascending: [rows, topk] and how many.
struct SelectionView {
  const std::int32_t* entries = nullptr;
  const std::int32_t* counts = nullptr;
  int topk = 0;
};

struct AttentionInput {
  const StepRow* rows = nullptr;
  std::size_t row_count = 0;
  const std::int32_t* blocks = nullptr;
  int window = 0;  ///< keys of the sliding window
  bool decoder = false;
  bool draft_block = false;  ///< every row sees the window before its range and the whole range
  int most_in_range = 0;     ///< rows of a range at most, for draft blocks
  int heads = 0;
  WindowRings rings;
  const float* fresh = nullptr;  ///< [rows, head width] the step's own keys, as the cache stores them
  bool compressed = false;
  PageRows entries;
  SelectionView selection;
  const float* sinks = nullptr;  ///< [heads]
  const float* q = nullptr;      ///< [rows, heads * head width], rotated
};

class Attention {
 public:
  /// Writes `o` like `q`. Every row's sums have an order of its own keys alone.
  void run(const AttentionInput& input, float* o);

 private:
  Buffer<float> keys_;
};

}  // namespace thalweg::cuda::general
