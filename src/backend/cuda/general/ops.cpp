#include "backend/cuda/general/ops.hpp"

#include <algorithm>
#include <utility>

#include "backend/cuda/general/row_ops.hpp"

namespace thalweg::cuda::general {

using checkpoint::Bf16Vector;
using model::Layer;

Ops::Ops(const model::Model& model, const DeviceWeights& weights, const CacheMemory& memory,
         bool round_inputs)
    : model_(model),
      weights_(weights),
      memory_(memory),
      round_inputs_(round_inputs),
      engram_(model, weights, round_inputs),
      compressor_(model, weights, memory),
      index_(model, weights, memory),
      experts_(model, weights, round_inputs),
      arrays_(model),
      block_(static_cast<std::size_t>(model.config().draft.block_size)) {}

void Ops::watch(int layer, const char* name, Rows& rows, std::initializer_list<std::size_t> shape) {
  if (observer_ == nullptr) return;
  std::vector<float> values = rows.download();
  observer_->floats(layer, name, values, rows.rows(), shape);
  rows.upload(values);
}

void Ops::watch(int layer, const char* site, const char* suffix, Rows& rows,
                std::initializer_list<std::size_t> shape) {
  if (observer_ != nullptr) watch(layer, (std::string(site) + suffix).c_str(), rows, shape);
}

const Rows& Ops::rounded(const Rows& source, Rows& copy) {
  if (!round_inputs_) return source;
  copy.resize(source.rows(), source.width());
  round_rows(numeric::RowFormat::fp8_32, source.data(), source.rows(), source.width(), copy.data());
  return copy;
}

void Ops::begin(const model::StepPlan& plan) {
  rows_.begin(plan);
  arrays_.update(rows_);
  features_.resize(rows_.size(), model_.config().draft.target_layer_ids.size() *
                                     static_cast<std::size_t>(model_.config().hidden_size));
}

void Ops::embed(const checkpoint::Bf16Matrix& table) {
  const auto streams = static_cast<std::size_t>(model_.config().hc_mult);
  const auto width = static_cast<std::size_t>(table.cols);
  h_.resize(rows_.size(), streams * width);
  pre_.resize(rows_.size(), streams);
  embed_rows(weights_.of(table), arrays_.tokens(), rows_.size(), streams, h_.data(), pre_.data());
  watch(0, "in_streams", h_, {streams, width});
}

void Ops::engram(const Layer& layer) {
  engram_.run(layer, rows_, arrays_, h_, observer_);
  watch(layer.plan.id, "engram_streams", h_, {pre_.width(), h_.width() / pre_.width()});
}

void Ops::draft_feature(const Layer& layer) {
  const std::size_t width = h_.width() / pre_.width();
  mean_streams(h_, pre_.width(), static_cast<std::size_t>(layer.plan.draft_feature) * width, features_);
}

void Ops::mix(const Layer& layer, const checkpoint::MixWeights& weights, const char* site) {
  const auto& config = model_.config();
  const std::size_t streams = pre_.width();
  multiply(weights_.of(weights.fn, weights.base.size()), h_, mix_products_);
  mix_pre_.resize(h_.rows(), streams);
  mix_post_.resize(h_.rows(), streams);
  mix_comb_.resize(h_.rows(), streams * streams);
  const MixRules rules{static_cast<int>(streams), config.hc_sinkhorn_iters, static_cast<float>(config.hc_eps),
                       static_cast<float>(config.rms_norm_eps)};
  mix_rows(rules, h_, mix_products_, weights_.of(weights.scale), weights_.of(weights.base), mix_pre_.data(),
           mix_post_.data(), mix_comb_.data());
  watch(layer.plan.id, site, "_pre", mix_pre_, {streams});
  watch(layer.plan.id, site, "_post", mix_post_, {streams});
  watch(layer.plan.id, site, "_comb", mix_comb_, {streams, streams});
}

void Ops::normalise(const Rows& rows, Bf16Vector weight) {
  norm_rows(rows, weights_.of(weight), static_cast<float>(model_.config().rms_norm_eps));
}

void Ops::collapse(const Layer& layer, Bf16Vector norm, const char* site) {
  collapse_rows(h_, pre_, x_);
  normalise(x_, norm);
  watch(layer.plan.id, site, "_in", x_, {x_.width()});
}

void Ops::compress(const Layer& layer) {
  compressor_.run(layer, rows_, arrays_, x_, observer_);
}

// Keeps the rows listed in `kept_`.
void Ops::keep(Rows& rows, std::size_t count) {
  spare_.resize(count, rows.width());
  gather_rows(rows.data(), kept_.data(), count, rows.width(), spare_.data());
  std::swap(rows, spare_);
}

void Ops::keep_decoder_rows() {
  const std::size_t before = rows_.size();
  const std::vector<std::int32_t>& kept = rows_.keep_decoder_rows();
  if (kept.size() == before) return;
  kept_.upload(kept);
  for (Rows* rows : {&h_, &pre_, &x_, &mix_pre_, &mix_post_, &mix_comb_, &features_}) {
    keep(*rows, kept.size());
  }
  arrays_.update(rows_);
}

void Ops::rotate(const Rows& rows, std::size_t width, bool inverse, bool compressed) {
  rotate_rows(rows, width, arrays_.rotations(compressed), arrays_.pairs(), inverse);
}

void Ops::project(const Layer& layer) {
  const checkpoint::AttentionWeights& weights = layer.weights->attention;
  const bool compressed = layer.plan.ratio != 0;
  const auto head_width = static_cast<std::size_t>(weights.wkv.rows);
  const Rows& x = rounded(x_, x_rounded_);
  multiply(weights_.of(weights.wq_a), x, query_latent_);
  multiply(weights_.of(weights.wkv), x, window_);
  normalise(query_latent_, weights.q_norm);
  multiply(weights_.of(weights.wq_b), rounded(query_latent_, query_rounded_), q_);
  rotate(q_, head_width, false, compressed);

  normalise(window_, weights.kv_norm);
  rotate(window_, head_width, false, compressed);
  round_rows(memory_.formats().window, window_.data(), window_.rows(), head_width, window_.data());
  watch(layer.plan.id, "window_kv", window_, {head_width});
}

void Ops::select(const Layer& layer) {
  index_.run(layer, rows_, arrays_, round_inputs_ ? query_rounded_ : query_latent_, x_, observer_);
}

void Ops::attend(const Layer& layer) {
  const auto& config = model_.config();
  const bool compressed = layer.plan.ratio != 0;
  AttentionInput input;
  input.rows = arrays_.rows();
  input.row_count = rows_.size();
  input.blocks = arrays_.blocks();
  input.window = config.sliding_window;
  input.decoder = layer.plan.decoder;
  input.draft_block = rows_.draft_block();
  input.most_in_range = config.draft.block_size;
  input.heads = config.heads;
  input.rings = memory_.windows(layer.plan.id);
  input.fresh = window_.data();
  input.compressed = compressed;
  if (compressed) {
    input.entries = memory_.entries(layer.plan.kv_source);
    input.selection = index_.selection();
  }
  input.sinks = weights_.of(layer.weights->attention.sink);
  input.q = q_.data();
  attended_.resize(rows_.size(), q_.width());
  attention_.run(input, attended_.data());
  watch(layer.plan.id, "attn_core", attended_, {attended_.width() / window_.width(), window_.width()});
  rotate(attended_, window_.width(), true, compressed);
}

void Ops::store_window(const Layer& layer) {
  store_windows(memory_.windows(layer.plan.id), arrays_.rows(), window_);
}

void Ops::project_output(const Layer& layer) {
  const checkpoint::AttentionWeights& weights = layer.weights->attention;
  const int groups = model_.config().o_groups;
  const Matrix whole = weights_.of(weights.wo_a);
  const int rank = whole.rows / groups;
  grouped_.resize(rows_.size(), whole.rows);
  const Rows& core = rounded(attended_, attended_rounded_);
  for (int g = 0; g < groups; ++g) {
    Matrix part = whole;
    part.rows = rank;
    part.data += static_cast<std::size_t>(g) * rank * whole.cols;
    part.scales += static_cast<std::size_t>(g) * rank / 32 * ((whole.cols + 31) / 32);
    multiply(Product{part, core.data() + static_cast<std::size_t>(g) * whole.cols, core.width(), core.rows(),
                     grouped_.data() + static_cast<std::size_t>(g) * rank, grouped_.width()});
  }
  multiply(weights_.of(weights.wo_b), rounded(grouped_, grouped_rounded_), o_);
  watch(layer.plan.id, "attn_out", o_, {o_.width()});
}

void Ops::experts(const Layer& layer, int per_row) {
  experts_.run(layer, per_row, arrays_, x_, o_, observer_);
  watch(layer.plan.id, "ffn_out", o_, {o_.width()});
}

void Ops::expand(const Layer& layer, const char* site) {
  expand_rows(o_, mix_post_, mix_comb_, h_);
  std::swap(pre_, mix_pre_);
  watch(layer.plan.id, site, "_streams", h_, {pre_.width(), h_.width() / pre_.width()});
}

void Ops::keep_logit_rows() {
  // The features stay: the draft's context needs all rows.
  const std::vector<std::int32_t>& kept = rows_.logit_rows();
  kept_.upload(kept);
  keep(h_, kept.size());
  keep(pre_, kept.size());
}

void Ops::final_norm(Bf16Vector norm) {
  collapse_rows(h_, pre_, x_);
  const bool draft = rows_.draft_block();
  watch(-1, draft ? "draft.collapsed" : "final_collapsed", x_, {x_.width()});
  if (draft) {  // the confidence head reads the state before the norm
    collapsed_.resize(x_.rows(), x_.width());
    check(cudaMemcpyAsync(collapsed_.data(), x_.data(), x_.size() * sizeof(float), cudaMemcpyDeviceToDevice),
          "copy rows");
  }
  normalise(x_, norm);
  watch(-1, draft ? "draft.normalized" : "final_hidden", x_, {x_.width()});
}

void Ops::head(const checkpoint::Bf16Matrix& weight) {
  multiply(weights_.of(weight), x_, logits_);
  watch(-1, rows_.draft_block() ? "draft.base_logits" : "logits", logits_, {logits_.width()});
  if (!rows_.draft_block()) host_logits_ = logits_.download();
}

}  // namespace thalweg::cuda::general
