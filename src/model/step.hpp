// A step as data: which rows the model computes, for which sequences, and where their caches lie. The
// scheduler writes plans, a backend executes them; the same plan serves prompt chunks, decode rows and
// verification, mixed at will.
#pragma once

#include <cstdint>
#include <vector>

namespace thalweg::model {

/// Rows of one sequence in a step: consecutive positions from `first_position`.
struct StepSequence {
  std::int32_t slot = 0;            ///< its window slot
  std::int32_t first_row = 0;       ///< in the arrays of the plan
  std::int32_t rows = 0;            ///< >= 1
  std::int64_t first_position = 0;  ///< position of its first row; positions count from 0 at the first token
  std::int32_t first_block =
      0;  ///< start of its block table in `StepPlan::blocks`; entry b holds positions 128 b ...
  std::int64_t encoder_floor = 0;  ///< window records of encoder layers exist from this position on
  std::int64_t decoder_floor = 0;  ///< the same for decoder layers
  std::int32_t dropped_rows = 0;   ///< leading rows without a decoder half (bounded replay); <= rows
};

/// One step. Plain arrays; the size of `tokens` is the number of rows.
struct StepPlan {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint8_t> image;  ///< per row: 1 inside an image span
  std::vector<StepSequence> sequences;
  std::vector<std::int32_t> blocks;  ///< page numbers, the tables of all sequences one after another
  /// Per sequence `lookback` tokens before its first row, the nearest first; -1 before the text or in an
  /// image span.
  std::vector<std::int32_t> history;
  std::int32_t lookback = 0;
  std::vector<std::int32_t> logit_rows;  ///< rows whose logits are wanted, ascending; none of them dropped

  void clear() {
    tokens.clear();
    image.clear();
    sequences.clear();
    blocks.clear();
    history.clear();
    logit_rows.clear();
  }
};

/// A draft pass as data: one DSpark block for each sequence listed.
struct DraftSequence {
  std::int32_t slot = 0;
  std::int32_t token = 0;  ///< the token just chosen; it sits at `position`, first of the block
  std::int64_t position = 0;
  std::int64_t floor = 0;  ///< draft window records exist from this position on
};

}  // namespace thalweg::model
