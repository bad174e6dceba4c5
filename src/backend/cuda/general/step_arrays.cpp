#include "backend/cuda/general/step_arrays.hpp"

#include "backend/cuda/general/row_ops.hpp"

namespace thalweg::cuda::general {

StepArrays::StepArrays(const model::Model& model)
    : pairs_(static_cast<int>(model.rope().plain.size())),
      plain_frequencies_(model.rope().plain),
      compressed_frequencies_(model.rope().compressed) {}

void StepArrays::update(const model::StepRows& rows) {
  host_rows_.clear();
  host_tokens_.clear();
  host_image_.clear();
  host_positions_.clear();
  const model::StepPlan* plan = rows.plan();
  for (const model::Row& row : rows.rows()) {
    const model::RowRange& range = rows.ranges()[row.sequence];
    const std::ptrdiff_t blocks = range.blocks != nullptr ? range.blocks - plan->blocks.data() : 0;
    host_rows_.push_back({row.position, range.first_position, range.encoder_floor, range.decoder_floor,
                          range.first, range.count, range.slot, static_cast<std::int32_t>(blocks)});
    host_tokens_.push_back(row.token);
    host_image_.push_back(row.image ? 1 : 0);
    host_positions_.push_back(row.position);
  }
  rows_.upload(host_rows_);
  tokens_.upload(host_tokens_);
  image_.upload(host_image_);
  positions_.upload(host_positions_);
  if (plan != nullptr) blocks_.upload(plan->blocks);
  const std::size_t count = rows.size();
  make_rotations(positions_.data(), count, plain_frequencies_.data(), pairs_,
                 plain_.reserve(count * pairs_ + 1));
  make_rotations(positions_.data(), count, compressed_frequencies_.data(), pairs_,
                 compressed_.reserve(count * pairs_ + 1));
}

}  // namespace thalweg::cuda::general
