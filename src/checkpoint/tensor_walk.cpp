#include "checkpoint/tensor_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace thalweg::checkpoint {
namespace {

std::int64_t blocks(std::int64_t n) {
  return (n + 31) / 32;
}

// Walks one checkpoint. Method names follow the structures of `Weights`; `at` is a name prefix with its dot.
class Walk {
 public:
  Walk(const ModelConfig& config, TensorSource& source) : config_(config), source_(source) {}

  Weights all() {
    Weights weights;
    weights.embed = bf16_matrix("embed.weight", config_.vocab_size, config_.hidden_size);
    weights.head = bf16_matrix("head.weight", config_.vocab_size, config_.hidden_size);
    weights.norm = bf16_vector("norm.weight", config_.hidden_size);
    for (int i = 0; i < config_.layers; ++i) {
      weights.layers.push_back(layer(fmt::format("layers.{}.", i), i, config_.routed_experts));
    }
    if (config_.draft.layers > 0) weights.draft = draft();
    if (config_.vision.layers > 0) vision();
    return weights;
  }

 private:
  template <class T>
  const T* data(const std::string& name, DType dtype, std::vector<std::int64_t> shape) {
    return reinterpret_cast<const T*>(source_.tensor(name, dtype, std::move(shape)));
  }

  Bf16Matrix bf16_matrix(const std::string& name, std::int64_t rows, std::int64_t cols) {
    return {data<Bf16Bits>(name, DType::bf16, {rows, cols}), rows, cols};
  }

  Bf16Vector bf16_vector(const std::string& name, std::int64_t n) {
    return {data<Bf16Bits>(name, DType::bf16, {n}), static_cast<std::size_t>(n)};
  }

  F32Vector f32(const std::string& name, std::vector<std::int64_t> shape) {
    std::size_t n = 1;
    for (const std::int64_t size : shape) n *= static_cast<std::size_t>(size);
    return {data<float>(name, DType::f32, std::move(shape)), n};
  }

  Fp8Matrix fp8(const std::string& name, std::int64_t rows, std::int64_t cols) {
    return {data<std::uint8_t>(name + ".weight", DType::e4m3, {rows, cols}),
            data<std::uint8_t>(name + ".scale", DType::e8m0, {blocks(rows), blocks(cols)}), rows, cols};
  }

  Fp4Matrix fp4(const std::string& name, std::int64_t rows, std::int64_t cols) {
    return {data<std::uint8_t>(name + ".weight", DType::i8, {rows, cols / 2}),
            data<std::uint8_t>(name + ".scale", DType::e8m0, {rows, cols / 32}), rows, cols};
  }

  Fp8Table table(const std::string& name, std::int64_t rows, std::int64_t cols) {
    return {data<std::uint8_t>(name + ".weight", DType::e4m3, {rows, cols}),
            data<std::uint8_t>(name + ".scale", DType::e8m0, {rows, cols / 32}), rows, cols};
  }

  MixWeights mix(const std::string& at) {
    const std::int64_t s = config_.hc_mult;
    return {f32(at + "_fn", {(2 + s) * s, s * config_.hidden_size}), f32(at + "_base", {(2 + s) * s}),
            f32(at + "_scale", {3})};
  }

  CompressorWeights compressor(const std::string& at, int ratio) {
    const std::int64_t hidden = config_.hidden_size;
    CompressorWeights weights;
    weights.wkv = bf16_matrix(at + "compressor.wkv.weight", config_.head_dim, hidden);
    if (ratio == 2) weights.wgate = bf16_matrix(at + "compressor.wgate.weight", config_.head_dim, hidden);
    weights.norm = bf16_vector(at + "compressor.norm.weight", config_.head_dim);
    weights.index_wk = bf16_matrix(at + "indexer.wk.weight", config_.index_head_dim, config_.head_dim);
    weights.index_k_norm = bf16_vector(at + "indexer.k_norm.weight", config_.index_head_dim);
    return weights;
  }

  // `index` < 0: a draft layer, which has no sources.
  AttentionWeights attention(const std::string& at, int index) {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t width = std::int64_t{config_.heads} * config_.head_dim;
    const std::int64_t rank = std::int64_t{config_.o_groups} * config_.o_lora_rank;
    AttentionWeights weights;
    weights.wq_a = fp8(at + "wq_a", config_.q_lora_rank, hidden);
    weights.q_norm = bf16_vector(at + "q_norm.weight", config_.q_lora_rank);
    weights.wq_b = fp8(at + "wq_b", width, config_.q_lora_rank);
    weights.wkv = fp8(at + "wkv", config_.head_dim, hidden);
    weights.kv_norm = bf16_vector(at + "kv_norm.weight", config_.head_dim);
    weights.sink = f32(at + "attn_sink", {config_.heads});
    weights.wo_a = fp8(at + "wo_a", rank, width / config_.o_groups);
    weights.wo_b = fp8(at + "wo_b", hidden, rank);
    if (std::ranges::binary_search(config_.kv_source_layer_ids, index)) {
      weights.compressor = compressor(at, config_.compress_ratios[static_cast<std::size_t>(index)]);
    }
    if (std::ranges::binary_search(config_.index_source_layer_ids, index)) {
      weights.indexer =
          IndexerWeights{fp8(at + "indexer.wq_b", std::int64_t{config_.index_heads} * config_.index_head_dim,
                             config_.q_lora_rank),
                         bf16_matrix(at + "indexer.weights_proj.weight", config_.index_heads, hidden)};
    }
    return weights;
  }

  MoeWeights moe(const std::string& at, int experts) {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t width = config_.moe_intermediate_size;
    MoeWeights weights;
    weights.gate = bf16_matrix(at + "gate.weight", experts, hidden);
    weights.bias = f32(at + "gate.bias", {experts});
    weights.bias_vl = f32(at + "gate.bias_vl", {experts});
    weights.shared.w1 = fp8(at + "shared_experts.w1", width, hidden);
    weights.shared.w3 = fp8(at + "shared_experts.w3", width, hidden);
    weights.shared.w2 = fp8(at + "shared_experts.w2", hidden, width);
    weights.experts.reserve(static_cast<std::size_t>(experts));
    for (int e = 0; e < experts; ++e) {
      const std::string expert = fmt::format("{}experts.{}.", at, e);
      ExpertWeights& w = weights.experts.emplace_back();
      w.w1 = fp4(expert + "w1", width, hidden);
      w.w3 = fp4(expert + "w3", width, hidden);
      w.w2 = fp4(expert + "w2", hidden, width);
    }
    return weights;
  }

  EngramWeights engram(const std::string& at, std::int64_t rows) {
    const EngramConfig& engram = config_.engram;
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t columns = std::int64_t{engram.max_ngram_size - 1} * engram.heads;
    EngramWeights weights;
    weights.embed = table(at + "embed", rows, engram.head_dim);
    weights.wkv = fp8(at + "wkv", (config_.hc_mult + 1) * hidden, columns * engram.head_dim);
    weights.q_weight = bf16_matrix(at + "q_weight", config_.hc_mult, hidden);
    weights.k_weight = bf16_matrix(at + "k_weight", config_.hc_mult, hidden);
    return weights;
  }

  LayerWeights layer(const std::string& at, int index, int experts) {
    LayerWeights weights;
    weights.attn_norm = bf16_vector(at + "attn_norm.weight", config_.hidden_size);
    weights.ffn_norm = bf16_vector(at + "ffn_norm.weight", config_.hidden_size);
    weights.attn_mix = mix(at + "hc_attn");
    weights.ffn_mix = mix(at + "hc_ffn");
    weights.attention = attention(at + "attn.", index);
    weights.moe = moe(at + "ffn.", experts);
    const auto& ids = config_.engram.layer_ids;
    if (const auto found = std::ranges::find(ids, index); found != ids.end()) {
      weights.engram =
          engram(at + "engram.", config_.engram.rows[static_cast<std::size_t>(found - ids.begin())]);
    }
    return weights;
  }

  DraftWeights draft() {
    const DraftConfig& draft = config_.draft;
    const std::int64_t hidden = config_.hidden_size;
    DraftWeights weights;
    for (int i = 0; i < draft.layers; ++i) {
      weights.layers.push_back(layer(fmt::format("mtp.{}.", i), -1, draft.experts));
    }
    const std::string last = fmt::format("mtp.{}.", draft.layers - 1);
    const auto targets = static_cast<std::int64_t>(draft.target_layer_ids.size());
    weights.main_proj = fp8("mtp.0.main_proj", hidden, targets * hidden);
    weights.main_norm = bf16_vector("mtp.0.main_norm.weight", hidden);
    weights.norm = bf16_vector(last + "norm.weight", hidden);
    weights.markov_embed =
        bf16_matrix(last + "markov_head.embed.weight", config_.vocab_size, draft.markov_rank);
    weights.markov_head =
        bf16_matrix(last + "markov_head.head.weight", config_.vocab_size, draft.markov_rank);
    const Bf16Matrix confidence =
        bf16_matrix(last + "confidence_head.proj.weight", 1, hidden + draft.markov_rank);
    weights.confidence = {confidence.data, static_cast<std::size_t>(confidence.cols)};
    return weights;
  }

  void vision() {
    const VisionConfig& vision = config_.vision;
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t width = vision.hidden_size;
    const std::int64_t patch = std::int64_t{3} * vision.patch_size * vision.patch_size;
    const std::int64_t cell = width * vision.downsample_ratio * vision.downsample_ratio;
    for (const char* name : {"image_start", "image_end", "image_newline"}) bf16_vector(name, hidden);
    biased("vision.patch_embed.proj", width, patch);
    for (int i = 0; i < vision.layers; ++i) {
      const std::string at = fmt::format("vision.blocks.{}.", i);
      bf16_vector(at + "norm1.weight", width);
      biased(at + "attn.wqkv", 3 * width, width);
      biased(at + "attn.wo", width, width);
      bf16_vector(at + "norm2.weight", width);
      bf16_matrix(at + "mlp.w1.weight", std::int64_t{2} * vision.intermediate_size, width);
      bf16_matrix(at + "mlp.w2.weight", width, vision.intermediate_size);
    }
    bf16_vector("vision.norm.weight", width);
    biased("aligner.w1", hidden, cell);
    biased("aligner.w2", hidden, hidden);
  }

  void biased(const std::string& name, std::int64_t rows, std::int64_t cols) {
    bf16_matrix(name + ".weight", rows, cols);
    bf16_vector(name + ".bias", rows);
  }

  const ModelConfig& config_;
  TensorSource& source_;
};

}  // namespace

Weights walk_tensors(const ModelConfig& config, TensorSource& source) {
  return Walk(config, source).all();
}

}  // namespace thalweg::checkpoint
