#include "backend/cuda/general/weights.hpp"

#include <algorithm>

namespace thalweg::cuda::general {
namespace {

constexpr std::size_t kBlock = std::size_t{64} << 20;  // most tensors are small: they share allocations
constexpr std::size_t kAlignment = 256;

std::size_t fp8_scales(const checkpoint::Fp8Matrix& m) {
  return static_cast<std::size_t>((m.rows + 31) / 32 * ((m.cols + 31) / 32));
}

}  // namespace

void DeviceWeights::copy(const void* host, std::size_t size) {
  if (size == 0 || places_.contains(host)) return;
  const std::size_t aligned = (size + kAlignment - 1) / kAlignment * kAlignment;
  if (blocks_.empty() || used_ + aligned > blocks_.back().size()) {
    blocks_.emplace_back(std::max(kBlock, aligned));
    used_ = 0;
  }
  auto* target = static_cast<std::uint8_t*>(blocks_.back().data()) + used_;
  check(cudaMemcpy(target, host, size, cudaMemcpyHostToDevice), "copy weights");
  used_ += aligned;
  bytes_ += size;
  places_.emplace(host, target);
}

void DeviceWeights::copy(const checkpoint::Bf16Matrix& m) {
  copy(m.data, static_cast<std::size_t>(m.rows * m.cols) * 2);
}

void DeviceWeights::copy(const checkpoint::Fp8Matrix& m) {
  copy(m.codes, static_cast<std::size_t>(m.rows * m.cols));
  copy(m.scales, fp8_scales(m));
}

void DeviceWeights::copy(const checkpoint::MixWeights& mix) {
  copy(mix.fn.data(), mix.fn.size_bytes());
  copy(mix.base.data(), mix.base.size_bytes());
  copy(mix.scale.data(), mix.scale.size_bytes());
}

void DeviceWeights::copy(const checkpoint::AttentionWeights& weights) {
  copy(weights.wq_a);
  copy(weights.q_norm.data(), weights.q_norm.size_bytes());
  copy(weights.wq_b);
  copy(weights.wkv);
  copy(weights.kv_norm.data(), weights.kv_norm.size_bytes());
  copy(weights.sink.data(), weights.sink.size_bytes());
  copy(weights.wo_a);
  copy(weights.wo_b);
  if (weights.compressor) {
    copy(weights.compressor->wkv);
    if (weights.compressor->wgate) copy(*weights.compressor->wgate);
    copy(weights.compressor->norm.data(), weights.compressor->norm.size_bytes());
    copy(weights.compressor->index_wk);
    copy(weights.compressor->index_k_norm.data(), weights.compressor->index_k_norm.size_bytes());
  }
  if (weights.indexer) {
    copy(weights.indexer->wq_b);
    copy(weights.indexer->weights_proj);
  }
}

void DeviceWeights::copy(const checkpoint::MoeWeights& weights) {
  copy(weights.gate);
  copy(weights.bias.data(), weights.bias.size_bytes());
  copy(weights.bias_vl.data(), weights.bias_vl.size_bytes());
  copy(weights.shared.w1);
  copy(weights.shared.w3);
  copy(weights.shared.w2);
  std::vector<Matrix> table;
  for (const checkpoint::ExpertWeights& expert : weights.experts) {
    for (const checkpoint::Fp4Matrix* m : {&expert.w1, &expert.w3, &expert.w2}) {
      copy(m->codes, static_cast<std::size_t>(m->rows * m->cols / 2));
      copy(m->scales, static_cast<std::size_t>(m->rows * (m->cols / 32)));
      table.push_back(of(*m));
    }
  }
  experts_.emplace(weights.experts.data(), DeviceArray<Matrix>(table));
}

void DeviceWeights::copy(const checkpoint::LayerWeights& weights) {
  copy(weights.attn_norm.data(), weights.attn_norm.size_bytes());
  copy(weights.ffn_norm.data(), weights.ffn_norm.size_bytes());
  copy(weights.attn_mix);
  copy(weights.ffn_mix);
  copy(weights.attention);
  copy(weights.moe);
  if (weights.engram) {
    copy(weights.engram->wkv);
    copy(weights.engram->q_weight);
    copy(weights.engram->k_weight);
  }
}

DeviceWeights::DeviceWeights(const model::Model& model) {
  const checkpoint::Weights& weights = model.weights();
  copy(weights.embed);
  copy(weights.head);
  copy(weights.norm.data(), weights.norm.size_bytes());
  for (const checkpoint::LayerWeights& layer : weights.layers) copy(layer);
  if (!weights.draft) return;
  for (const checkpoint::LayerWeights& layer : weights.draft->layers) copy(layer);
  copy(weights.draft->main_proj);
  copy(weights.draft->main_norm.data(), weights.draft->main_norm.size_bytes());
  copy(weights.draft->norm.data(), weights.draft->norm.size_bytes());
  copy(weights.draft->markov_embed);
  copy(weights.draft->markov_head);
  copy(weights.draft->confidence.data(), weights.draft->confidence.size_bytes());
}

const void* DeviceWeights::find(const void* host) const {
  return places_.at(host);
}

Matrix DeviceWeights::of(const checkpoint::Bf16Matrix& m) const {
  return {Matrix::Kind::bf16, static_cast<const std::uint8_t*>(find(m.data)), nullptr,
          static_cast<int>(m.rows), static_cast<int>(m.cols)};
}

Matrix DeviceWeights::of(const checkpoint::Fp8Matrix& m) const {
  return {Matrix::Kind::fp8, static_cast<const std::uint8_t*>(find(m.codes)),
          static_cast<const std::uint8_t*>(find(m.scales)), static_cast<int>(m.rows),
          static_cast<int>(m.cols)};
}

Matrix DeviceWeights::of(const checkpoint::Fp4Matrix& m) const {
  return {Matrix::Kind::fp4, static_cast<const std::uint8_t*>(find(m.codes)),
          static_cast<const std::uint8_t*>(find(m.scales)), static_cast<int>(m.rows),
          static_cast<int>(m.cols)};
}

Matrix DeviceWeights::of(checkpoint::F32Vector values, std::size_t rows) const {
  return {Matrix::Kind::f32, static_cast<const std::uint8_t*>(find(values.data())), nullptr,
          static_cast<int>(rows), static_cast<int>(values.size() / rows)};
}

const std::uint16_t* DeviceWeights::of(checkpoint::Bf16Vector values) const {
  return static_cast<const std::uint16_t*>(find(values.data()));
}

const float* DeviceWeights::of(checkpoint::F32Vector values) const {
  return static_cast<const float*>(find(values.data()));
}

const Matrix* DeviceWeights::experts(const checkpoint::MoeWeights& weights) const {
  return experts_.at(weights.experts.data()).data();
}

}  // namespace thalweg::cuda::general
