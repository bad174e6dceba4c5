// The indexer: scores of compressed entries, candidate blocks and the top-k selection of every row (model
// specification, section 3.6). Cost: heads x 128 multiply-adds for every row and entry; entries are scored in
// tiles and the scores of a few rows at a time are kept, never rows x context for a whole chunk.
#pragma once

#include "backend/cpu/cache_memory.hpp"
#include "backend/cpu/context.hpp"
#include "backend/cpu/linear.hpp"
#include "model/observer.hpp"
#include "model/step_rows.hpp"

namespace thalweg::backend::cpu {

/// Places of the `count` largest scores (of all, if there are fewer), ascending; equal scores go to the lower
/// place. `places` is scratch and result.
void best_places(std::span<const float> scores, std::size_t count, std::vector<std::uint64_t>& places);

/// The `count` candidate blocks of a row: blocks of `size` consecutive entries ranked by their largest score,
/// the one with the newest entry always among them. Ascending; empty if there are no more than `count`
/// blocks, which means all of them.
void candidate_blocks(std::span<const float> scores, std::size_t size, std::size_t count,
                      std::vector<std::int64_t>& blocks);

/// Selected entries of every row, ascending.
struct Selection {
  std::vector<std::int64_t> entries;  ///< [rows, topk]
  std::vector<std::int32_t> counts;   ///< [rows]
  std::size_t topk = 0;

  std::span<const std::int64_t> of(std::size_t row) const {
    return {entries.data() + row * topk, static_cast<std::size_t>(counts[row])};
  }
};

class IndexSelect {
 public:
  IndexSelect(const Context& context, Linear& linear, CacheMemory& memory)
      : context_(context), linear_(linear), memory_(memory) {}

  /// `qr` are the rows' normed query latents, `qr_linear` the same as inputs of FP8 linears, `x` the normed
  /// hidden states. Leaves the selection of every row, which later layers reuse.
  void run(const model::Layer& layer, const model::StepRows& rows, const float* qr_linear, const Rows& x,
           model::Observer* observer);

  const Selection& selection() const { return selection_; }

 private:
  void make_queries(const model::Layer& layer, const model::StepRows& rows, const float* qr_linear,
                    const Rows& x);
  std::int64_t visible(const model::Layer& layer, const model::StepRows& rows, std::size_t row) const;
  std::int64_t scored(const model::Layer& layer, std::size_t row, std::int64_t visible) const;
  std::int64_t entry_at(const model::Layer& layer, std::size_t row, std::int64_t place) const;
  void score_tile(const model::Layer& layer, const model::StepRows& rows, std::size_t row, std::int64_t first,
                  std::int64_t last, float* scores);
  void choose_entries(const model::Layer& layer, std::size_t row, std::span<const float> scores);
  void observe(const model::Layer& layer, const model::StepRows& rows, std::size_t first, std::size_t count,
               model::Observer& observer);

  const Context& context_;
  Linear& linear_;
  CacheMemory& memory_;
  Rows queries_;                                       // [rows, heads * dim]
  Rows weights_;                                       // [rows, heads]
  std::vector<std::vector<float>> scores_;             // of the rows of one pass
  std::vector<std::vector<std::int64_t>> candidates_;  // candidate blocks of every row, ascending; empty: all
  Selection selection_;
};

}  // namespace thalweg::backend::cpu
