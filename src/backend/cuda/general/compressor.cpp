#include "backend/cuda/general/compressor.hpp"

#include <utility>

#include "backend/cuda/general/kernels.hpp"
#include "backend/cuda/general/row_ops.hpp"

namespace thalweg::cuda::general {

void Compressor::list_entries(int ratio, const model::StepRows& rows) {
  host_entries_.clear();
  host_positions_.clear();
  for (const model::RowRange& range : rows.ranges()) {
    const auto blocks = static_cast<std::int32_t>(range.blocks - rows.plan()->blocks.data());
    for (std::int32_t i = 0; i < range.count; ++i) {
      const std::int64_t position = range.first_position + i;
      if ((position + 1) % ratio != 0) continue;
      host_entries_.push_back({position / ratio, range.first + i, range.first, range.slot, blocks});
      host_positions_.push_back(position / ratio * ratio);
    }
  }
  entries_.upload(host_entries_);
  positions_.upload(host_positions_);
}

// The latents of the completed entries and what later steps need of this one.
void Compressor::pool(const model::Layer& layer, const StepArrays& arrays) {
  const std::size_t count = host_entries_.size();
  latents_.resize(count, values_.width());
  if (layer.plan.ratio != 2) {
    take_entries(entries_.data(), count, values_, latents_.data());
    return;
  }
  const RawRings rings = memory_.raw(layer.plan.id);
  pool_pairs(rings, entries_.data(), count, values_, scores_, latents_.data());
  keep_raw(rings, arrays.rows(), values_, scores_);
}

void Compressor::store(const model::Layer& layer, const StepArrays& arrays, model::Observer* observer) {
  const checkpoint::CompressorWeights& weights = *layer.weights->attention.compressor;
  const auto eps = static_cast<float>(model_.config().rms_norm_eps);
  const std::size_t count = host_entries_.size();
  multiply(weights_.of(weights.index_wk), latents_, keys_);
  norm_rows(keys_, weights_.of(weights.index_k_norm), eps);
  float2* rotations = rotations_.reserve(count * arrays.pairs() + 1);
  make_rotations(positions_.data(), count, arrays.frequencies(true), arrays.pairs(), rotations);
  rotate_rows(keys_, keys_.width(), rotations, arrays.pairs(), false);
  rotate_rows(latents_, latents_.width(), rotations, arrays.pairs(), false);
  store_entries(memory_.index_keys(layer.plan.id), entries_.data(), arrays.blocks(), keys_);
  store_entries(memory_.entries(layer.plan.id), entries_.data(), arrays.blocks(), latents_);
  if (observer == nullptr) return;
  const std::pair<Rows*, const char*> kinds[] = {{&latents_, "compressed_kv"}, {&keys_, "index_keys"}};
  const numeric::RowFormat formats[] = {memory_.formats().compressed, memory_.formats().index};
  for (int i = 0; i < 2; ++i) {
    Rows& rows = *kinds[i].first;
    round_rows(formats[i], rows.data(), count, rows.width(), rows.data());
    std::vector<float> values = rows.download();
    observer->floats(layer.plan.id, kinds[i].second, values, count, {rows.width()});
  }
}

void Compressor::run(const model::Layer& layer, const model::StepRows& rows, const StepArrays& arrays,
                     const Rows& x, model::Observer* observer) {
  const checkpoint::CompressorWeights& weights = *layer.weights->attention.compressor;
  multiply(weights_.of(weights.wkv), x, values_);
  if (weights.wgate) multiply(weights_.of(*weights.wgate), x, scores_);
  list_entries(layer.plan.ratio, rows);
  pool(layer, arrays);
  norm_rows(latents_, weights_.of(weights.norm), static_cast<float>(model_.config().rms_norm_eps));
  if (observer != nullptr) {
    std::vector<float> values = latents_.download();
    observer->floats(layer.plan.id, "compressor_rows", values, latents_.rows(), {latents_.width()});
    latents_.upload(values);
  }
  store(layer, arrays, observer);
}

}  // namespace thalweg::cuda::general
