#include "model/flops.hpp"

#include <algorithm>
#include <set>

#include "model/layers.hpp"

namespace thalweg::model {
namespace {

// Operations of one multiply-add by the format of its operands.
constexpr std::int64_t fp4 = 1;
constexpr std::int64_t fp8 = 2;
constexpr std::int64_t bf16 = 4;
constexpr std::int64_t fp32 = 8;

/// Rows of visible positions first < p <= last, where p = position + 1.
struct Rows {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t count() const { return last - first; }
};

/// Sum over p = 1..n of min(max(p - start, 0), cap).
std::int64_t sum_of_windows(std::int64_t n, std::int64_t start, std::int64_t cap) {
  const std::int64_t rising = std::clamp<std::int64_t>(n - start, 0, cap);
  return rising * (rising + 1) / 2 + std::max<std::int64_t>(n - start - rising, 0) * cap;
}

/// Sum over p = 1..n of min(floor(p / divisor), cap).
std::int64_t sum_of_quotients(std::int64_t n, std::int64_t divisor, std::int64_t cap) {
  const std::int64_t rising = std::min(n, divisor * cap - 1);
  const std::int64_t whole = rising / divisor;
  return divisor * (whole * (whole - 1) / 2) + whole * (rising % divisor + 1) + (n - rising) * cap;
}

std::int64_t quotients(Rows rows, std::int64_t divisor, std::int64_t cap) {
  return sum_of_quotients(rows.last, divisor, cap) - sum_of_quotients(rows.first, divisor, cap);
}

class Account {
 public:
  Account(const FlopsShape& shape, const FlopsStep& step)
      : shape_(shape), step_(step), rows_{step.context - step.rows, step.context}, kept_(rows_) {
    if (!step.prompt || step.replay == FlopsReplay::off) return;
    tail_ = std::max<std::int64_t>(step.prompt_length - step.keep, 0);
    if (step.replay == FlopsReplay::compact) {
      kept_.first = std::min(std::max(rows_.first, tail_), rows_.last - 1);
    }
  }

  Flops count() const {
    const FlopsShape& s = shape_;
    Flops flops;
    bool first_decoder = true;
    for (const FlopsShape::Layer& layer : s.layers) {
      const Rows rows = layer.decoder ? kept_ : rows_;
      flops.attention += attention(layer, rows);
      flops.total += rows.count() * (experts() + 2 * (mixing() + spreading()));
      if (layer.decoder && first_decoder) flops.total += (rows_.count() - rows.count()) * mixing();
      if (layer.decoder) first_decoder = false;
      if (layer.engram) flops.total += rows.count() * engram();
    }
    // The streams start equal, so the first collapse is free; the head has one of its own.
    flops.total += (kept_.count() - rows_.count()) * collapse();
    flops.total += (step_.prompt ? 1 : step_.rows) * bf16 * s.hidden_size * s.vocab_size;
    flops.total += flops.attention;
    return flops;
  }

 private:
  std::int64_t projections() const {
    const FlopsShape& s = shape_;
    const std::int64_t width = s.heads * s.head_dim;
    return fp8 * (s.hidden_size * (s.q_lora_rank + s.head_dim) + s.q_lora_rank * width +
                  width * s.o_lora_rank + s.o_groups * s.o_lora_rank * s.hidden_size);
  }

  std::int64_t attention(const FlopsShape::Layer& layer, Rows rows) const {
    const FlopsShape& s = shape_;
    std::int64_t sum = rows.count() * projections();
    std::int64_t pairs = windows(layer, rows);
    if (layer.ratio > 0) pairs += quotients(rows, layer.ratio, s.index_topk);
    sum += bf16 * s.heads * 2 * s.head_dim * pairs;
    if (layer.kv_source) sum += compression(layer);
    if (layer.index_source) {
      sum += rows.count() *
             (fp8 * s.q_lora_rank * s.index_heads * s.index_head_dim + bf16 * s.hidden_size * s.index_heads);
      sum += fp4 * s.index_heads * s.index_head_dim * scored_entries(layer, rows);
    }
    return sum;
  }

  std::int64_t windows(const FlopsShape::Layer& layer, Rows rows) const {
    const std::int64_t start = std::max(step_.window_start, layer.decoder ? tail_ : 0);
    return sum_of_windows(rows.last, start, shape_.sliding_window) -
           sum_of_windows(rows.first, start, shape_.sliding_window);
  }

  /// Compressor and index keys see every row, also where replay cuts the decoder half short.
  std::int64_t compression(const FlopsShape::Layer& layer) const {
    const FlopsShape& s = shape_;
    const std::int64_t outputs =
        layer.ratio == 1 ? s.head_dim : 2 * s.head_dim;  // latent; score too if several merge
    const std::int64_t completed = rows_.last / layer.ratio - rows_.first / layer.ratio;
    const std::int64_t keys = step_.prompt ? std::max<std::int64_t>(completed, 1) : step_.rows;
    return rows_.count() * bf16 * s.hidden_size * outputs + keys * bf16 * s.head_dim * s.index_head_dim;
  }

  std::int64_t scored_entries(const FlopsShape::Layer& layer, Rows rows) const {
    const std::int64_t block = shape_.candidate_block_size;
    if (!layer.uses_candidates) return quotients(rows, layer.ratio, rows.last);
    // ceil(floor(p / ratio) / block) = floor((p + ratio (block - 1)) / (ratio block))
    const std::int64_t shift = layer.ratio * (block - 1);
    const Rows shifted{rows.first + shift, rows.last + shift};
    return block * quotients(shifted, layer.ratio * block, shape_.candidate_topk_blocks);
  }

  std::int64_t experts() const {
    const FlopsShape& s = shape_;
    const std::int64_t shared = 1;
    return fp8 * 3 * s.hidden_size * s.moe_intermediate_size * (s.experts_per_token + shared) +
           bf16 * s.hidden_size * s.routed_experts;
  }

  std::int64_t collapse() const { return fp32 * shape_.hc_mult * shape_.hidden_size; }
  /// Coefficients (pre, post and comb of all streams) and the collapse of one sublayer's hyper-connection.
  std::int64_t mixing() const { return collapse() * (shape_.hc_mult * (shape_.hc_mult + 2) + 1); }
  /// Its way back: streams combined with each other and with the sublayer's output.
  std::int64_t spreading() const { return collapse() * (shape_.hc_mult + 1); }
  /// A key a stream and one value, and the gate.
  std::int64_t engram() const {
    return fp8 * shape_.engram_width * shape_.hidden_size * (shape_.hc_mult + 1) + collapse();
  }

  const FlopsShape& shape_;
  const FlopsStep& step_;
  Rows rows_;
  Rows kept_;              // rows of the decoder half
  std::int64_t tail_ = 0;  // first position of the kept tail
};

}  // namespace

FlopsShape released_flops_shape() {
  FlopsShape shape;
  constexpr int encoder_layers = 20;
  constexpr int all_layers = 40;
  const std::set<int> kv_sources = {2, 8, 14, 20};
  const std::set<int> index_sources = {2, 8, 14, 20, 24, 28, 32, 36};
  const std::set<int> engrams = {1, 14};
  for (int id = 0; id < all_layers; ++id) {
    FlopsShape::Layer layer;
    layer.decoder = id >= encoder_layers;
    layer.ratio = layer.decoder ? 1 : id < 2 ? 0 : 2;
    layer.kv_source = kv_sources.contains(id);
    layer.index_source = index_sources.contains(id);
    layer.uses_candidates = layer.index_source && id > encoder_layers;
    layer.engram = engrams.contains(id);
    shape.layers.push_back(layer);
  }
  return shape;
}

FlopsShape flops_shape(const checkpoint::ModelConfig& config) {
  FlopsShape shape;
  shape.vocab_size = config.vocab_size;
  shape.hidden_size = config.hidden_size;
  shape.heads = config.heads;
  shape.head_dim = config.head_dim;
  shape.q_lora_rank = config.q_lora_rank;
  shape.o_lora_rank = config.o_lora_rank;
  shape.o_groups = config.o_groups;
  shape.sliding_window = config.sliding_window;
  shape.index_heads = config.index_heads;
  shape.index_head_dim = config.index_head_dim;
  shape.index_topk = config.index_topk;
  shape.candidate_topk_blocks = config.candidate_topk_blocks;
  shape.candidate_block_size = config.candidate_block_size;
  shape.moe_intermediate_size = config.moe_intermediate_size;
  shape.routed_experts = config.routed_experts;
  shape.experts_per_token = config.experts_per_token;
  shape.hc_mult = config.hc_mult;
  shape.engram_width = static_cast<std::int64_t>(std::max(config.engram.max_ngram_size - 1, 0)) *
                       config.engram.heads * config.engram.head_dim;
  for (const LayerPlan& plan : plan_layers(config)) {
    shape.layers.push_back({.ratio = plan.ratio,
                            .decoder = plan.decoder,
                            .kv_source = plan.is_kv_source(),
                            .index_source = plan.is_index_source(),
                            .uses_candidates = plan.is_index_source() && plan.uses_candidates,
                            .engram = plan.engram >= 0});
  }
  return shape;
}

Flops count_flops(const FlopsShape& shape, const FlopsStep& step) {
  return Account(shape, step).count();
}

}  // namespace thalweg::model
