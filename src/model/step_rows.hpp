// The rows of a step that are still being computed: all of them in the encoder half, fewer after the border.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/step.hpp"

namespace thalweg::model {

struct Row {
  std::int64_t position = 0;
  std::int32_t sequence = 0;
  std::int32_t plan_row = 0;  ///< row in the plan
  std::int32_t token = 0;
  bool image = false;
};

/// Consecutive rows of one sequence among those being computed.
struct RowRange {
  std::int32_t slot = 0;
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int64_t first_position = 0;
  std::int64_t encoder_floor = 0;
  std::int64_t decoder_floor = 0;
  const std::int32_t* blocks = nullptr;
};

/// Rows and ranges of a plan. Keeps a reference to the plan's block tables; the plan must outlive the step.
class StepRows {
 public:
  void begin(const StepPlan& plan);
  void begin_draft(std::span<const DraftSequence> sequences, int block, int noise_token);

  /// Drops the rows without a decoder half. Returns the former indices of the rows that stay.
  const std::vector<std::int32_t>& keep_decoder_rows();
  /// Indices among the current rows of those whose logits are wanted.
  const std::vector<std::int32_t>& logit_rows();

  std::span<const Row> rows() const { return rows_; }
  std::span<const RowRange> ranges() const { return ranges_; }
  std::size_t size() const { return rows_.size(); }
  bool draft_block() const { return draft_block_; }
  const StepPlan* plan() const { return plan_; }

 private:
  void keep(const std::vector<std::int32_t>& indices);

  const StepPlan* plan_ = nullptr;
  bool draft_block_ = false;
  std::vector<Row> rows_;
  std::vector<RowRange> ranges_;
  std::vector<std::int32_t> kept_;
};

}  // namespace thalweg::model
