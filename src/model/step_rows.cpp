#include "model/step_rows.hpp"

namespace thalweg::model {

void StepRows::begin(const StepPlan& plan) {
  plan_ = &plan;
  draft_block_ = false;
  rows_.clear();
  ranges_.clear();
  for (std::size_t s = 0; s < plan.sequences.size(); ++s) {
    const StepSequence& sequence = plan.sequences[s];
    ranges_.push_back({sequence.slot, sequence.first_row, sequence.rows, sequence.first_position,
                       sequence.encoder_floor, sequence.decoder_floor,
                       plan.blocks.data() + sequence.first_block});
    for (std::int32_t i = 0; i < sequence.rows; ++i) {
      const std::int32_t row = sequence.first_row + i;
      rows_.push_back({sequence.first_position + i, static_cast<std::int32_t>(s), row, plan.tokens[row],
                       plan.image[row] != 0});
    }
  }
}

void StepRows::begin_draft(std::span<const DraftSequence> sequences, int block, int noise_token) {
  plan_ = nullptr;
  draft_block_ = true;
  rows_.clear();
  ranges_.clear();
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const DraftSequence& sequence = sequences[s];
    ranges_.push_back({sequence.slot, static_cast<std::int32_t>(rows_.size()), block, sequence.position,
                       sequence.floor, sequence.floor, nullptr});
    for (int i = 0; i < block; ++i) {
      rows_.push_back({sequence.position + i, static_cast<std::int32_t>(s),
                       static_cast<std::int32_t>(rows_.size()), i == 0 ? sequence.token : noise_token,
                       false});
    }
  }
}

const std::vector<std::int32_t>& StepRows::keep_decoder_rows() {
  kept_.clear();
  for (std::size_t s = 0; s < ranges_.size(); ++s) {
    RowRange& range = ranges_[s];
    const std::int32_t dropped = plan_->sequences[s].dropped_rows;
    for (std::int32_t i = dropped; i < range.count; ++i) kept_.push_back(range.first + i);
    range.first = static_cast<std::int32_t>(kept_.size()) - (range.count - dropped);
    range.count -= dropped;
    range.first_position += dropped;
  }
  keep(kept_);
  return kept_;
}

const std::vector<std::int32_t>& StepRows::logit_rows() {
  kept_.clear();
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < rows_.size() && wanted < plan_->logit_rows.size(); ++i) {
    if (rows_[i].plan_row != plan_->logit_rows[wanted]) continue;
    kept_.push_back(static_cast<std::int32_t>(i));
    ++wanted;
  }
  return kept_;
}

void StepRows::keep(const std::vector<std::int32_t>& indices) {
  for (std::size_t i = 0; i < indices.size(); ++i) rows_[i] = rows_[indices[i]];
  rows_.resize(indices.size());
}

}  // namespace thalweg::model
