#include "backend/cpu/compressor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/norm.hpp"
#include "backend/cpu/rotary.hpp"

namespace thalweg::backend::cpu {

void Compressor::list_entries(int ratio, const model::StepRows& rows) {
  entries_.clear();
  for (std::size_t r = 0; r < rows.ranges().size(); ++r) {
    const model::RowRange& range = rows.ranges()[r];
    for (std::int32_t i = 0; i < range.count; ++i) {
      const std::int64_t position = range.first_position + i;
      if ((position + 1) % ratio != 0) continue;
      entries_.push_back({static_cast<std::int32_t>(r), position / ratio, range.first + i});
    }
  }
}

// Channel-wise softmax over the two tokens of a group; the first may have come in an earlier step.
void Compressor::pool_pair(const model::Layer& layer, const model::StepRows& rows, const Entry& entry,
                           float* latent) {
  const std::size_t width = values_.width();
  const model::RowRange& range = rows.ranges()[entry.range];
  const float* value1 = values_.row(entry.row);
  const float* score1 = scores_.row(entry.row);
  const float* value0;
  const float* score0;
  if (entry.row > range.first) {
    value0 = values_.row(entry.row - 1);
    score0 = scores_.row(entry.row - 1);
  } else {
    const float* raw = memory_.raw(range.slot, layer.plan.id, entry.index * 2);
    score0 = raw;
    value0 = raw + width;
  }
  for (std::size_t d = 0; d < width; ++d) {
    const float largest = std::max(score0[d], score1[d]);
    const float e0 = std::exp(score0[d] - largest);
    const float e1 = std::exp(score1[d] - largest);
    latent[d] = e0 / (e0 + e1) * value0[d] + e1 / (e0 + e1) * value1[d];
  }
}

void Compressor::keep_raw(const model::Layer& layer, const model::StepRows& rows) {
  const std::size_t width = values_.width();
  for (const model::RowRange& range : rows.ranges()) {
    for (std::int32_t i = std::max(0, range.count - memory_.slot_layout().compressor_tokens); i < range.count;
         ++i) {
      float* raw = memory_.raw(range.slot, layer.plan.id, range.first_position + i);
      std::memcpy(raw, scores_.row(range.first + i), width * sizeof(float));
      std::memcpy(raw + width, values_.row(range.first + i), width * sizeof(float));
    }
  }
}

void Compressor::store(const model::Layer& layer, const model::StepRows& rows, model::Observer* observer) {
  const checkpoint::CompressorWeights& weights = *layer.weights->attention.compressor;
  const model::PageSection& section = memory_.section(layer.plan.id);
  const auto eps = static_cast<float>(context_.model.config().rms_norm_eps);
  const std::size_t width = latents_.width();
  keys_.resize(entries_.size(), weights.index_wk.rows);
  linear_.run(
      {Matrix(weights.index_wk), latents_.data(), width, entries_.size(), keys_.data(), keys_.width()});
  context_.pool.parallel_for(entries_.size(), 4, [&](std::size_t begin, std::size_t end, std::size_t) {
    thread_local Rotation rotation;  // keeps its memory
    for (std::size_t e = begin; e < end; ++e) {
      const Entry& entry = entries_[e];
      const std::int32_t* blocks = rows.ranges()[entry.range].blocks;
      rotation.set(entry.index * layer.plan.ratio, context_.model.rope().compressed);
      float* key = keys_.row(e);
      rms_norm(key, weights.index_k_norm, eps);
      rotation.apply(key, keys_.width());
      memory_.store_index(section, blocks, entry.index, {key, keys_.width()});
      float* latent = latents_.row(e);
      rotation.apply(latent, width);
      memory_.store_entry(section, blocks, entry.index, {latent, width});
    }
  });
  if (observer == nullptr) return;
  for (std::size_t e = 0; e < entries_.size(); ++e) {
    numeric::round_row(memory_.formats().compressed, {latents_.row(e), width});
    numeric::round_row(memory_.formats().index, {keys_.row(e), keys_.width()});
  }
  observer->floats(layer.plan.id, "compressed_kv", {latents_.data(), latents_.size()}, entries_.size(),
                   {width});
  observer->floats(layer.plan.id, "index_keys", {keys_.data(), keys_.size()}, entries_.size(),
                   {keys_.width()});
}

void Compressor::run(const model::Layer& layer, const model::StepRows& rows, const Rows& x,
                     model::Observer* observer) {
  const checkpoint::CompressorWeights& weights = *layer.weights->attention.compressor;
  const auto eps = static_cast<float>(context_.model.config().rms_norm_eps);
  const std::size_t width = weights.wkv.rows;
  values_.resize(rows.size(), width);
  scores_.resize(rows.size(), weights.wgate ? width : 0);
  Product products[2] = {{Matrix(weights.wkv), x.data(), x.width(), rows.size(), values_.data(), width}, {}};
  if (weights.wgate)
    products[1] = {Matrix(*weights.wgate), x.data(), x.width(), rows.size(), scores_.data(), width};
  linear_.run({products, weights.wgate ? 2U : 1U});

  list_entries(layer.plan.ratio, rows);
  latents_.resize(entries_.size(), width);
  context_.pool.parallel_for(entries_.size(), 4, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t e = begin; e < end; ++e) {
      float* latent = latents_.row(e);
      if (layer.plan.ratio == 2) {
        pool_pair(layer, rows, entries_[e], latent);
      } else {
        std::memcpy(latent, values_.row(entries_[e].row), width * sizeof(float));
      }
      rms_norm(latent, weights.norm, eps);
    }
  });
  if (observer != nullptr) {
    observer->floats(layer.plan.id, "compressor_rows", {latents_.data(), latents_.size()}, entries_.size(),
                     {width});
  }
  if (layer.plan.ratio == 2) keep_raw(layer, rows);
  store(layer, rows, observer);
}

}  // namespace thalweg::backend::cpu
