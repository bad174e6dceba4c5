#include "backend/cpu/ops.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "backend/cpu/norm.hpp"
#include "backend/cpu/rotary.hpp"

namespace thalweg::backend::cpu {

using checkpoint::Bf16Vector;
using model::Layer;

Ops::Ops(const Context& context, CacheMemory& memory)
    : context_(context),
      memory_(memory),
      linear_(context),
      engram_(context, linear_),
      compressor_(context, linear_, memory),
      index_(context, linear_, memory),
      attention_(context, memory),
      experts_(context, linear_),
      block_(static_cast<std::size_t>(context.model.config().draft.block_size)) {}

void Ops::watch(int layer, const char* name, Rows& rows, std::initializer_list<std::size_t> shape) {
  if (observer_ != nullptr) observer_->floats(layer, name, {rows.data(), rows.size()}, rows.rows(), shape);
}

void Ops::watch(int layer, const char* site, const char* suffix, Rows& rows,
                std::initializer_list<std::size_t> shape) {
  if (observer_ != nullptr) watch(layer, (std::string(site) + suffix).c_str(), rows, shape);
}

void Ops::begin(const model::StepPlan& plan) {
  rows_.begin(plan);
  features_.resize(rows_.size(), context_.model.config().draft.target_layer_ids.size() *
                                     static_cast<std::size_t>(context_.model.config().hidden_size));
}

void Ops::begin_draft(std::span<const model::DraftSequence> sequences) {
  const auto& draft = context_.model.config().draft;
  rows_.begin_draft(sequences, draft.block_size, draft.noise_token_id);
  draft_sequences_ = sequences.size();
  draft_previous_.clear();
  for (const model::DraftSequence& sequence : sequences) draft_previous_.push_back(sequence.token);
  draft_tokens_.assign(rows_.size(), 0);
  draft_confidence_.assign(rows_.size(), 0.0F);
}

void Ops::embed(const checkpoint::Bf16Matrix& table) {
  const auto streams = static_cast<std::size_t>(context_.model.config().hc_mult);
  const auto width = static_cast<std::size_t>(table.cols);
  h_.resize(rows_.size(), streams * width);
  pre_.resize(rows_.size(), streams);
  context_.pool.parallel_for(rows_.size(), 8, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      const checkpoint::Bf16Bits* source = table.data + rows_.rows()[i].token * table.cols;
      float* out = h_.row(i);
      for (std::size_t d = 0; d < width; ++d) out[d] = numeric::from_bf16(source[d]);
      for (std::size_t s = 1; s < streams; ++s) std::memcpy(out + s * width, out, width * sizeof(float));
      std::fill(pre_.row(i), pre_.row(i) + streams, 0.0F);
      pre_.row(i)[0] = 1.0F;
    }
  });
  watch(0, "in_streams", h_, {streams, width});
}

void Ops::engram(const Layer& layer) {
  engram_.run(layer, rows_, h_, observer_);
  watch(layer.plan.id, "engram_streams", h_, {pre_.width(), h_.width() / pre_.width()});
}

void Ops::draft_feature(const Layer& layer) {
  const std::size_t streams = pre_.width();
  const std::size_t width = h_.width() / streams;
  context_.pool.parallel_for(rows_.size(), 8, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      float* out = features_.row(i) + static_cast<std::size_t>(layer.plan.draft_feature) * width;
      std::fill(out, out + width, 0.0F);
      for (std::size_t s = 0; s < streams; ++s) {
        const float* in = h_.row(i) + s * width;
        for (std::size_t d = 0; d < width; ++d) out[d] += in[d];
      }
      for (std::size_t d = 0; d < width; ++d) out[d] /= static_cast<float>(streams);
    }
  });
}

void Ops::mix(const Layer& layer, const checkpoint::MixWeights& weights, const char* site) {
  mix_coefficients(context_, linear_, weights, h_, mix_products_, mix_);
  watch(layer.plan.id, site, "_pre", mix_.pre, {pre_.width()});
  watch(layer.plan.id, site, "_post", mix_.post, {pre_.width()});
  watch(layer.plan.id, site, "_comb", mix_.comb, {pre_.width(), pre_.width()});
}

void Ops::normalise(Rows& rows, Bf16Vector weight) {
  const auto eps = static_cast<float>(context_.model.config().rms_norm_eps);
  context_.pool.parallel_for(rows.rows(), 8, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      rms_norm(rows.row(i), weight, eps);
    }
  });
}

void Ops::collapse(const Layer& layer, Bf16Vector norm, const char* site) {
  cpu::collapse(context_, h_, pre_, x_);
  normalise(x_, norm);
  watch(layer.plan.id, site, "_in", x_, {x_.width()});
}

void Ops::compress(const Layer& layer) {
  compressor_.run(layer, rows_, x_, observer_);
}

void Ops::keep(Rows& rows, const std::vector<std::int32_t>& indices) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (static_cast<std::size_t>(indices[i]) == i) continue;
    std::memcpy(rows.row(i), rows.row(indices[i]), rows.width() * sizeof(float));
  }
  rows.resize(indices.size(), rows.width());
}

void Ops::keep_decoder_rows() {
  const std::vector<std::int32_t>& kept = rows_.keep_decoder_rows();
  for (Rows* rows : {&h_, &pre_, &x_, &mix_.pre, &mix_.post, &mix_.comb, &features_}) keep(*rows, kept);
}

// Rotates every `width` channels of every row by the row's position.
void Ops::rotate_rows(Rows& vectors, std::size_t width, bool inverse, bool compressed) {
  const auto& rope = context_.model.rope();
  context_.pool.parallel_for(vectors.rows(), 2, [&](std::size_t begin, std::size_t end, std::size_t) {
    thread_local Rotation rotation;  // keeps its memory
    for (std::size_t i = begin; i < end; ++i) {
      rotation.set(rows_.rows()[i].position, compressed ? rope.compressed : rope.plain);
      for (float* x = vectors.row(i); x < vectors.row(i) + vectors.width(); x += width) {
        if (inverse) {
          rotation.undo(x, width);
        } else {
          rotation.apply(x, width);
        }
      }
    }
  });
}

void Ops::project(const Layer& layer) {
  const checkpoint::AttentionWeights& weights = layer.weights->attention;
  const std::size_t n = rows_.size();
  const bool compressed = layer.plan.ratio != 0;
  const auto head_dim = static_cast<std::size_t>(weights.wkv.rows);
  query_latent_.resize(n, weights.wq_a.rows);
  window_.resize(n, head_dim);
  const float* x = linear_.quantised(x_, x_rounded_);
  const Product products[] = {
      {Matrix(weights.wq_a), x, x_.width(), n, query_latent_.data(), query_latent_.width()},
      {Matrix(weights.wkv), x, x_.width(), n, window_.data(), head_dim}};
  linear_.run(products);
  normalise(query_latent_, weights.q_norm);
  const float* latent = linear_.quantised(query_latent_, query_rounded_);
  q_.resize(n, weights.wq_b.rows);
  linear_.run({Matrix(weights.wq_b), latent, query_latent_.width(), n, q_.data(), q_.width()});
  rotate_rows(q_, head_dim, false, compressed);

  normalise(window_, weights.kv_norm);
  rotate_rows(window_, head_dim, false, compressed);
  context_.pool.parallel_for(n, 8, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      numeric::round_row(context_.rounding.formats.window, {window_.row(i), head_dim});
    }
  });
  watch(layer.plan.id, "window_kv", window_, {head_dim});
}

void Ops::select(const Layer& layer) {
  const float* latent = context_.rounding.linear_inputs ? query_rounded_.data() : query_latent_.data();
  index_.run(layer, rows_, latent, x_, observer_);
}

void Ops::attend(const Layer& layer) {
  const std::size_t head_dim = window_.width();
  const bool compressed = layer.plan.ratio != 0;
  attention_.run(layer, rows_, q_, window_, compressed ? &index_.selection() : nullptr, attended_);
  watch(layer.plan.id, "attn_core", attended_, {attended_.width() / head_dim, head_dim});
  rotate_rows(attended_, head_dim, true, compressed);
}

void Ops::store_rows(const Layer& layer, const Rows& window) {
  const std::int32_t ring = memory_.slot_layout().window_tokens;
  for (const model::RowRange& range : rows_.ranges()) {
    for (std::int32_t i = std::max(0, range.count - ring); i < range.count; ++i) {
      const auto row = static_cast<std::size_t>(range.first + i);
      memory_.store_window(memory_.window(range.slot, layer.plan.id, range.first_position + i),
                           {window.row(row), window.width()});
    }
  }
}

void Ops::store_window(const Layer& layer) {
  store_rows(layer, window_);
}

void Ops::project_output(const Layer& layer) {
  const checkpoint::AttentionWeights& weights = layer.weights->attention;
  const auto groups = static_cast<std::size_t>(context_.model.config().o_groups);
  const auto rank = static_cast<std::size_t>(weights.wo_a.rows) / groups;
  const auto inputs = static_cast<std::size_t>(weights.wo_a.cols);
  const std::size_t n = rows_.size();
  grouped_.resize(n, groups * rank);
  const float* core = linear_.quantised(attended_, attended_rounded_);
  output_products_.clear();
  for (std::size_t g = 0; g < groups; ++g) {
    output_products_.push_back({Matrix(weights.wo_a).slice_rows(g * rank, rank), core + g * inputs,
                                attended_.width(), n, grouped_.data() + g * rank, grouped_.width()});
  }
  linear_.run(output_products_);
  const float* u = linear_.quantised(grouped_, grouped_rounded_);
  o_.resize(n, weights.wo_b.rows);
  linear_.run({Matrix(weights.wo_b), u, grouped_.width(), n, o_.data(), o_.width()});
  watch(layer.plan.id, "attn_out", o_, {o_.width()});
}

void Ops::experts(const Layer& layer, int per_row) {
  experts_.run(layer, per_row, rows_, x_, o_, observer_);
  watch(layer.plan.id, "ffn_out", o_, {o_.width()});
}

void Ops::expand(const Layer& layer, const char* site) {
  cpu::expand(context_, o_, mix_, h_);
  std::swap(pre_, mix_.pre);
  watch(layer.plan.id, site, "_streams", h_, {pre_.width(), h_.width() / pre_.width()});
}

void Ops::keep_logit_rows() {
  // The features stay: the draft's context needs all rows.
  const std::vector<std::int32_t>& kept = rows_.logit_rows();
  keep(h_, kept);
  keep(pre_, kept);
}

void Ops::final_norm(Bf16Vector norm) {
  cpu::collapse(context_, h_, pre_, x_);
  const bool draft = rows_.draft_block();
  if (draft) collapsed_ = x_;  // the confidence head reads the state before the norm
  watch(-1, draft ? "draft.collapsed" : "final_collapsed", x_, {x_.width()});
  normalise(x_, norm);
  watch(-1, draft ? "draft.normalized" : "final_hidden", x_, {x_.width()});
}

void Ops::head(const checkpoint::Bf16Matrix& weight) {
  logits_.resize(x_.rows(), weight.rows);
  linear_.run({Matrix(weight), x_.data(), x_.width(), x_.rows(), logits_.data(), logits_.width()});
  watch(-1, rows_.draft_block() ? "draft.base_logits" : "logits", logits_, {logits_.width()});
}

}  // namespace thalweg::backend::cpu
