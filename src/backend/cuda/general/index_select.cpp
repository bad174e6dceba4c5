#include "backend/cuda/general/index_select.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cuda/general/kernels.hpp"
#include "backend/cuda/general/row_ops.hpp"

namespace thalweg::cuda::general {
namespace {

constexpr std::size_t kScoreBudget = std::size_t{32} << 20;  // floats at once

template <class T>
std::vector<T> fetch(const T* source, std::size_t count) {
  std::vector<T> values(count);
  check(cudaMemcpy(values.data(), source, count * sizeof(T), cudaMemcpyDeviceToHost), "copy from device");
  return values;
}

}  // namespace

SelectionView IndexSelect::selection() const {
  return {entries_.data(), counts_.data(), model_.config().index_topk};
}

void IndexSelect::make_queries(const model::Layer& layer, const StepArrays& arrays, const Rows& latents,
                               const Rows& x) {
  const auto& config = model_.config();
  const checkpoint::IndexerWeights& weights = *layer.weights->attention.indexer;
  const auto width = static_cast<std::size_t>(config.index_head_dim);
  multiply(weights_.of(weights.wq_b), latents, queries_);
  multiply(weights_.of(weights.weights_proj), x, head_weights_);
  rotate_rows(queries_, width, arrays.rotations(true), arrays.pairs(), false);
  round_rows(memory_.formats().index, queries_.data(), queries_.rows() * config.index_heads, width,
             queries_.data());
  const float scale = 1.0F / std::sqrt(static_cast<float>(width) * static_cast<float>(config.index_heads));
  scale_values(head_weights_, scale);
}

// All visible entries of a row are scored, or those in its candidate blocks, of which the newest is one.
void IndexSelect::count_scores(const model::Layer& layer, const model::StepRows& rows) {
  const std::int32_t size = std::max(1, model_.config().candidate_block_size);
  const std::int32_t most = model_.config().candidate_topk_blocks;
  visible_.clear();
  scored_.clear();
  blocks_.clear();
  if (layer.plan.makes_candidates) candidate_counts_.assign(rows.size(), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto visible = static_cast<std::int32_t>((rows.rows()[i].position + 1) / layer.plan.ratio);
    const std::int32_t blocks = (visible + size - 1) / size;
    visible_.push_back(visible);
    blocks_.push_back(blocks);
    if (layer.plan.makes_candidates) candidate_counts_[i] = blocks <= most ? 0 : most;
    const bool all = !layer.plan.uses_candidates || candidate_counts_[i] == 0;
    scored_.push_back(all ? visible : (candidate_counts_[i] - 1) * size + visible - (blocks - 1) * size);
  }
  device_scored_.upload(scored_);
  device_blocks_.upload(blocks_);
  if (layer.plan.makes_candidates) {
    device_candidate_counts_.upload(candidate_counts_);
    candidates_.reserve(rows.size() * static_cast<std::size_t>(most));
  }
}

void IndexSelect::make_candidates(std::size_t first, std::size_t count, std::size_t stride) {
  const int size = model_.config().candidate_block_size;
  const int most = model_.config().candidate_topk_blocks;
  const std::size_t blocks_stride = (stride + size - 1) / size;
  float* maxima = maxima_.reserve(count * blocks_stride);
  block_maxima(scores_.data(), count, stride, device_scored_.data() + first, size,
               device_blocks_.data() + first, blocks_stride, maxima);
  select_best(maxima, count, blocks_stride, device_blocks_.data() + first, most,
              candidates_.data() + first * most, found_.reserve(count));
}

void IndexSelect::run_pass(const model::Layer& layer, const StepArrays& arrays, std::size_t first,
                           std::size_t count, std::size_t stride) {
  const auto& config = model_.config();
  const bool candidates = layer.plan.uses_candidates;
  const ScoreInput in{arrays.rows(),
                      arrays.blocks(),
                      memory_.index_keys(layer.plan.kv_source),
                      queries_.data(),
                      head_weights_.data(),
                      config.index_heads,
                      device_scored_.data(),
                      candidates ? candidates_.data() : nullptr,
                      candidates ? device_candidate_counts_.data() : nullptr,
                      config.candidate_topk_blocks,
                      std::max(1, config.candidate_block_size)};
  score_entries(in, first, count, stride, scores_.data());
  if (layer.plan.makes_candidates) make_candidates(first, count, stride);
  const int topk = config.index_topk;
  select_best(scores_.data(), count, stride, device_scored_.data() + first, topk,
              entries_.data() + first * topk, counts_.data() + first);
  places_to_entries(in, first, count, topk, counts_.data(), entries_.data());
}

void IndexSelect::run(const model::Layer& layer, const model::StepRows& rows, const StepArrays& arrays,
                      const Rows& latents, const Rows& x, model::Observer* observer) {
  if (rows.size() == 0) return;
  make_queries(layer, arrays, latents, x);
  const auto heads = static_cast<std::size_t>(model_.config().index_heads);
  if (observer != nullptr) {
    std::vector<float> values = queries_.download();
    observer->floats(layer.plan.id, "index_q", values, rows.size(), {heads, queries_.width() / heads});
    queries_.upload(values);
    values = head_weights_.download();
    observer->floats(layer.plan.id, "index_w", values, rows.size(), {heads});
    head_weights_.upload(values);
  }
  count_scores(layer, rows);
  entries_.reserve(rows.size() * model_.config().index_topk);
  counts_.reserve(rows.size());
  for (std::size_t first = 0; first < rows.size();) {
    // As many rows as the score budget allows, at least one.
    std::size_t count = 0;
    std::size_t most = 1;
    while (first + count < rows.size() && count < 32768) {
      const std::size_t wider = std::max<std::size_t>(most, scored_[first + count]);
      if (count > 0 && (count + 1) * wider > kScoreBudget) break;
      most = wider;
      ++count;
    }
    scores_.reserve(count * most);
    run_pass(layer, arrays, first, count, most);
    if (observer != nullptr) observe(layer, first, count, most, *observer);
    first += count;
  }
}

void IndexSelect::observe(const model::Layer& layer, std::size_t first, std::size_t count, std::size_t stride,
                          model::Observer& observer) const {
  const int size = std::max(1, model_.config().candidate_block_size);
  const auto topk = static_cast<std::size_t>(model_.config().index_topk);
  const auto most = static_cast<std::size_t>(std::max(0, model_.config().candidate_topk_blocks));
  for (std::size_t row = first; row < first + count; ++row) {
    const auto entries = static_cast<std::size_t>(visible_[row]);
    const std::vector<float> kept = fetch(scores_.data() + (row - first) * stride, scored_[row]);
    std::vector<std::int32_t> blocks;
    if ((layer.plan.uses_candidates || layer.plan.makes_candidates) && candidate_counts_[row] > 0)
      blocks = fetch(candidates_.data() + row * most, most);
    std::vector<float> scores(entries, -std::numeric_limits<float>::infinity());
    for (std::size_t place = 0; place < kept.size(); ++place) {
      const bool all = !layer.plan.uses_candidates || blocks.empty();
      scores[all ? place : static_cast<std::size_t>(blocks[place / size]) * size + place % size] =
          kept[place];
    }
    observer.floats(layer.plan.id, "index_scores", scores, 1, {entries});
    const std::int32_t found = fetch(counts_.data() + row, 1)[0];
    const std::vector<std::int32_t> chosen = fetch(entries_.data() + row * topk, found);
    std::vector<std::int64_t> padded(topk, -1);
    std::copy(chosen.begin(), chosen.end(), padded.begin());
    observer.integers(layer.plan.id, "topk", padded, 1, padded.size());
    if (!layer.plan.makes_candidates) continue;
    std::vector<std::int64_t> allowed(entries, blocks.empty() ? 1 : 0);
    for (const std::int32_t block : blocks) {
      const std::size_t begin = static_cast<std::size_t>(block) * size;
      for (std::size_t j = begin; j < std::min(entries, begin + size); ++j) allowed[j] = 1;
    }
    observer.integers(layer.plan.id, "candidates", allowed, 1, entries);
  }
}

}  // namespace thalweg::cuda::general
