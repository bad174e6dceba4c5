// Compressed KV and index keys of a KV-source layer (model specification, sections 3.5 and 3.6). Cost: three
// thin products with BF16 weights for every row.
#pragma once

#include "backend/cpu/cache_memory.hpp"
#include "backend/cpu/context.hpp"
#include "backend/cpu/linear.hpp"
#include "model/observer.hpp"
#include "model/step_rows.hpp"

namespace thalweg::backend::cpu {

class Compressor {
 public:
  Compressor(const Context& context, Linear& linear, CacheMemory& memory)
      : context_(context), linear_(linear), memory_(memory) {}

  /// Feeds all rows' normed hidden states `x`; writes every entry that they complete into the pages, and what
  /// an incomplete group needs later into the compressor rings.
  void run(const model::Layer& layer, const model::StepRows& rows, const Rows& x, model::Observer* observer);

 private:
  struct Entry {
    std::int32_t range;
    std::int64_t index;  ///< entry number in its sequence
    std::int32_t row;    ///< the row that completes it
  };
  void list_entries(int ratio, const model::StepRows& rows);
  void pool_pair(const model::Layer& layer, const model::StepRows& rows, const Entry& entry, float* latent);
  void keep_raw(const model::Layer& layer, const model::StepRows& rows);
  void store(const model::Layer& layer, const model::StepRows& rows, model::Observer* observer);

  const Context& context_;
  Linear& linear_;
  CacheMemory& memory_;
  std::vector<Entry> entries_;
  Rows values_;   // wkv x of every row
  Rows scores_;   // wgate x of every row, ratio 2
  Rows latents_;  // of every completed entry
  Rows keys_;
};

}  // namespace thalweg::backend::cpu
