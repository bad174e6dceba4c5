// Sparse attention with sinks (model specification, section 3.4): every row attends to its sliding window and
// to the selected entries of the compressed KV; K and V are the same vector, shared by all heads. Cost: per
// row and key 2 x heads x head_dim multiply-adds; keys are unpacked once a row and shared by the heads.
#pragma once

#include "backend/cpu/cache_memory.hpp"
#include "backend/cpu/context.hpp"
#include "backend/cpu/index_select.hpp"
#include "model/step_rows.hpp"

namespace thalweg::backend::cpu {

class Attention {
 public:
  Attention(const Context& context, CacheMemory& memory) : context_(context), memory_(memory) {}

  /// `q` [rows, heads * head_dim], rotated; `window` [rows, head_dim]: the rows' own records as the cache
  /// stores them. Older window keys come from the rings. `selection` is null for window-only layers. Writes
  /// `o` like `q`.
  void run(const model::Layer& layer, const model::StepRows& rows, const Rows& q, const Rows& window,
           const Selection* selection, Rows& o);

 private:
  struct Span {
    std::int64_t first;  ///< first window position
    std::size_t window;  ///< window keys
    std::size_t keys;    ///< window keys and selected entries
  };
  Span span_of(const model::Layer& layer, const model::StepRows& rows, std::size_t row,
               const Selection* selection) const;
  void load_key(const model::Layer& layer, const model::StepRows& rows, const Rows& window,
                const Selection* selection, std::size_t row, std::size_t key, float* out);
  void attend(const model::Layer& layer, std::size_t keys, const float* values, const float* q,
              std::size_t head, std::size_t heads, float* o);

  const Context& context_;
  CacheMemory& memory_;
  std::vector<Span> spans_;
  std::vector<float> keys_;  // unpacked keys of the rows of one pass
};

}  // namespace thalweg::backend::cpu
