#include "backend/cpu/attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/gemm_kernels.hpp"

namespace thalweg::backend::cpu {
namespace {

constexpr std::size_t kKeyBudget = 4 * 1024 * 1024;  // floats of unpacked keys at once
constexpr std::size_t kHeads = 4;                    // heads that share one pass over the keys

}  // namespace

Attention::Span Attention::span_of(const model::Layer& layer, const model::StepRows& rows, std::size_t row,
                                   const Selection* selection) const {
  const std::int64_t window = context_.model.config().sliding_window;
  const model::RowRange& range = rows.ranges()[rows.rows()[row].sequence];
  const std::int64_t floor = layer.plan.decoder ? range.decoder_floor : range.encoder_floor;
  std::int64_t first;
  std::int64_t last;
  if (rows.draft_block()) {  // the window before the block, then the whole block
    first = std::max(range.first_position - window, floor);
    last = range.first_position + range.count - 1;
  } else {
    last = rows.rows()[row].position;
    first = std::max(last - window + 1, floor);
  }
  first = std::max<std::int64_t>(first, 0);
  const auto count = static_cast<std::size_t>(last - first + 1);
  return {first, count, count + (selection != nullptr ? selection->of(row).size() : 0)};
}

void Attention::load_key(const model::Layer& layer, const model::StepRows& rows, const Rows& window,
                         const Selection* selection, std::size_t row, std::size_t key, float* out) {
  const std::size_t dim = window.width();
  const model::RowRange& range = rows.ranges()[rows.rows()[row].sequence];
  const Span& span = spans_[row];
  if (key >= span.window) {
    const std::int64_t entry = selection->of(row)[key - span.window];
    memory_.load_entry(memory_.section(layer.plan.kv_source), range.blocks, entry, {out, dim});
    return;
  }
  const std::int64_t position = span.first + static_cast<std::int64_t>(key);
  if (position >= range.first_position) {
    std::memcpy(out, window.row(range.first + (position - range.first_position)), dim * sizeof(float));
  } else {
    memory_.load_window(memory_.window(range.slot, layer.plan.id, position), {out, dim});
  }
}

// Softmax attention of up to kHeads heads of a row; the sink adds to the denominator only.
void Attention::attend(const model::Layer& layer, std::size_t keys, const float* values, const float* q,
                       std::size_t head, std::size_t heads, float* o) {
  const auto& config = context_.model.config();
  const std::size_t dim = config.head_dim;
  const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
  thread_local std::vector<float> weights;
  thread_local std::vector<float> scratch;
  const auto most =
      static_cast<std::size_t>(config.sliding_window + config.index_topk + config.draft.block_size);
  weights.reserve(kHeads * std::max(most, keys));  // once, although contexts grow by a token a step
  weights.resize(kHeads * keys);
  scratch.resize(gemm_scratch(dim));
  gemm_rows(Matrix(values, keys, dim), 0, keys, q + head * dim, dim, heads, weights.data(), keys,
            scratch.data());
  float denominators[kHeads];
  for (std::size_t h = 0; h < heads; ++h) {
    float* w = weights.data() + h * keys;
    float largest = -1e30F;
    for (std::size_t k = 0; k < keys; ++k) largest = std::max(largest, w[k] *= scale);
    float sum = 0;
    for (std::size_t k = 0; k < keys; ++k) {
      w[k] = std::exp(w[k] - largest);
      sum += w[k];
    }
    denominators[h] = sum + std::exp(layer.weights->attention.sink[head + h] - largest);
  }
  weighted_sum(weights.data(), keys, heads, values, keys, dim, o + head * dim, dim);
  for (std::size_t h = 0; h < heads; ++h) {
    float* out = o + (head + h) * dim;
    for (std::size_t d = 0; d < dim; ++d) out[d] = out[d] / denominators[h];
  }
}

void Attention::run(const model::Layer& layer, const model::StepRows& rows, const Rows& q, const Rows& window,
                    const Selection* selection, Rows& o) {
  const std::size_t dim = window.width();
  const std::size_t heads = context_.model.config().heads;
  o.resize(rows.size(), q.width());
  if (rows.size() == 0) return;
  spans_.resize(rows.size());
  std::size_t most = 1;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    spans_[i] = span_of(layer, rows, i, selection);
    most = std::max(most, spans_[i].keys);
  }
  const std::size_t pass = std::clamp<std::size_t>(kKeyBudget / (most * dim), 1, rows.size());
  if (keys_.size() < pass * most * dim) keys_.resize(pass * most * dim);
  const std::size_t groups = (heads + kHeads - 1) / kHeads;
  for (std::size_t first = 0; first < rows.size(); first += pass) {
    const std::size_t count = std::min(pass, rows.size() - first);
    context_.pool.parallel_for(count * most, 64, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t item = begin; item < end; ++item) {
        const std::size_t row = first + item / most;
        const std::size_t key = item % most;
        if (key < spans_[row].keys)
          load_key(layer, rows, window, selection, row, key, keys_.data() + item * dim);
      }
    });
    context_.pool.parallel_for(count * groups, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t item = begin; item < end; ++item) {
        const std::size_t row = first + item / groups;
        const std::size_t head = item % groups * kHeads;
        attend(layer, spans_[row].keys, keys_.data() + (row - first) * most * dim, q.row(row), head,
               std::min(kHeads, heads - head), o.row(row));
      }
    });
  }
}

}  // namespace thalweg::backend::cpu
