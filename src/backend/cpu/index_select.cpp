#include "backend/cpu/index_select.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "backend/cpu/gemm_kernels.hpp"
#include "backend/cpu/rotary.hpp"

namespace thalweg::backend::cpu {
namespace {

constexpr std::int64_t kTile = 256;                    // entries scored at once
constexpr std::size_t kScoreBudget = 4 * 1024 * 1024;  // scores kept at once, in floats

// An order in which larger scores come first and equal scores by lower place; total for every bit pattern.
std::uint64_t order_key(float score, std::uint32_t place) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);  // -0 and +0 are equal
  const std::uint32_t ascending = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return (std::uint64_t{~ascending} << 32) | place;
}

// Contexts grow by a token a step: memory for them grows by powers of two instead.
template <class T>
void resize_rarely(std::vector<T>& values, std::size_t size) {
  if (size > values.capacity()) values.reserve(std::bit_ceil(std::max<std::size_t>(size, kTile)));
  values.resize(size);
}

}  // namespace

void best_places(std::span<const float> scores, std::size_t count, std::vector<std::uint64_t>& places) {
  resize_rarely(places, scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i)
    places[i] = order_key(scores[i], static_cast<std::uint32_t>(i));
  if (count < places.size()) {
    std::nth_element(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(count), places.end());
    places.resize(count);
  }
  for (std::uint64_t& place : places) place &= 0xffffffffU;
  std::sort(places.begin(), places.end());
}

void candidate_blocks(std::span<const float> scores, std::size_t size, std::size_t count,
                      std::vector<std::int64_t>& blocks) {
  blocks.clear();
  const std::size_t all = (scores.size() + size - 1) / size;
  if (all <= count) return;
  thread_local std::vector<float> best;
  thread_local std::vector<std::uint64_t> places;
  resize_rarely(best, all);
  for (std::size_t b = 0; b < all; ++b) {
    const auto entries = scores.subspan(b * size, std::min(size, scores.size() - b * size));
    best[b] = *std::max_element(entries.begin(), entries.end());
  }
  best.back() = std::numeric_limits<float>::infinity();
  best_places(best, count, places);
  blocks.assign(places.begin(), places.end());
}

std::int64_t IndexSelect::visible(const model::Layer& layer, const model::StepRows& rows,
                                  std::size_t row) const {
  return (rows.rows()[row].position + 1) / layer.plan.ratio;
}

// How many entries of a row are scored: all visible ones, or those in its candidate blocks.
std::int64_t IndexSelect::scored(const model::Layer& layer, std::size_t row, std::int64_t visible) const {
  if (!layer.plan.uses_candidates || candidates_[row].empty()) return visible;
  const std::int64_t size = context_.model.config().candidate_block_size;
  const auto& blocks = candidates_[row];
  const std::int64_t in_last = std::min(size, visible - blocks.back() * size);
  return (static_cast<std::int64_t>(blocks.size()) - 1) * size + in_last;
}

std::int64_t IndexSelect::entry_at(const model::Layer& layer, std::size_t row, std::int64_t place) const {
  if (!layer.plan.uses_candidates || candidates_[row].empty()) return place;
  const std::int64_t size = context_.model.config().candidate_block_size;
  return candidates_[row][place / size] * size + place % size;
}

void IndexSelect::make_queries(const model::Layer& layer, const model::StepRows& rows, const float* qr_linear,
                               const Rows& x) {
  const auto& config = context_.model.config();
  const checkpoint::IndexerWeights& weights = *layer.weights->attention.indexer;
  const std::size_t heads = config.index_heads;
  const std::size_t dim = config.index_head_dim;
  queries_.resize(rows.size(), heads * dim);
  weights_.resize(rows.size(), heads);
  const Product products[] = {
      {Matrix(weights.wq_b), qr_linear, static_cast<std::size_t>(weights.wq_b.cols), rows.size(),
       queries_.data(), queries_.width()},
      {Matrix(weights.weights_proj), x.data(), x.width(), rows.size(), weights_.data(), heads}};
  linear_.run(products);
  const float scale = 1.0F / std::sqrt(static_cast<float>(dim) * static_cast<float>(heads));
  context_.pool.parallel_for(rows.size(), 2, [&](std::size_t begin, std::size_t end, std::size_t) {
    thread_local Rotation rotation;  // keeps its memory
    for (std::size_t i = begin; i < end; ++i) {
      rotation.set(rows.rows()[i].position, context_.model.rope().compressed);
      for (std::size_t head = 0; head < heads; ++head) {
        float* query = queries_.row(i) + head * dim;
        rotation.apply(query, dim);
        numeric::round_row(context_.rounding.formats.index, {query, dim});
      }
      for (std::size_t head = 0; head < heads; ++head) weights_.row(i)[head] *= scale;
    }
  });
}

void IndexSelect::score_tile(const model::Layer& layer, const model::StepRows& rows, std::size_t row,
                             std::int64_t first, std::int64_t last, float* scores) {
  const std::size_t heads = context_.model.config().index_heads;
  const std::size_t dim = context_.model.config().index_head_dim;
  const model::PageSection& section = memory_.section(layer.plan.kv_source);
  const std::int32_t* blocks = rows.ranges()[rows.rows()[row].sequence].blocks;
  const auto count = static_cast<std::size_t>(last - first);
  thread_local std::vector<float> keys;
  thread_local std::vector<float> dots;
  thread_local std::vector<float> scratch;
  keys.resize(kTile * dim);
  dots.resize(heads * kTile);
  scratch.resize(gemm_scratch(dim));
  for (std::int64_t place = first; place < last; ++place) {
    memory_.load_index(section, blocks, entry_at(layer, row, place),
                       {keys.data() + (place - first) * dim, dim});
  }
  gemm_rows(Matrix(keys.data(), count, dim), 0, count, queries_.row(row), dim, heads, dots.data(), kTile,
            scratch.data());
  const float* weights = weights_.row(row);
  float* out = scores + first;
  std::fill(out, out + count, 0.0F);
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t i = 0; i < count; ++i) {
      const float dot = std::max(0.0F, dots[head * kTile + i]);
      out[i] += weights[head] * dot;
    }
  }
}

void IndexSelect::choose_entries(const model::Layer& layer, std::size_t row, std::span<const float> scores) {
  thread_local std::vector<std::uint64_t> keys;
  best_places(scores, selection_.topk, keys);
  selection_.counts[row] = static_cast<std::int32_t>(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    selection_.entries[row * selection_.topk + i] = entry_at(layer, row, static_cast<std::int64_t>(keys[i]));
  }
}

void IndexSelect::run(const model::Layer& layer, const model::StepRows& rows, const float* qr_linear,
                      const Rows& x, model::Observer* observer) {
  const auto& config = context_.model.config();
  make_queries(layer, rows, qr_linear, x);
  if (observer != nullptr) {
    const std::size_t heads = config.index_heads;
    observer->floats(layer.plan.id, "index_q", {queries_.data(), queries_.size()}, rows.size(),
                     {heads, queries_.width() / heads});
    observer->floats(layer.plan.id, "index_w", {weights_.data(), weights_.size()}, rows.size(), {heads});
  }
  selection_.topk = config.index_topk;
  selection_.entries.resize(rows.size() * selection_.topk);
  selection_.counts.resize(rows.size());
  while (candidates_.size() < rows.size()) {
    candidates_.emplace_back().reserve(static_cast<std::size_t>(std::max(0, config.candidate_topk_blocks)));
  }
  for (std::size_t first = 0; first < rows.size();) {
    // As many rows as the score budget allows, at least one.
    std::size_t count = 0;
    std::size_t most = 0;
    while (first + count < rows.size()) {
      most = std::max<std::size_t>(most, visible(layer, rows, first + count));
      if (count > 0 && (count + 1) * most > kScoreBudget) break;
      ++count;
    }
    if (scores_.size() < count) scores_.resize(count);
    const std::size_t tiles = (most + kTile - 1) / kTile;
    for (std::size_t i = 0; i < count; ++i) {
      resize_rarely(scores_[i],
                    static_cast<std::size_t>(scored(layer, first + i, visible(layer, rows, first + i))));
    }
    context_.pool.parallel_for(count * tiles, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t item = begin; item < end; ++item) {
        const std::size_t i = item / tiles;
        const auto tile = static_cast<std::int64_t>(item % tiles) * kTile;
        const auto size = static_cast<std::int64_t>(scores_[i].size());
        if (tile >= size) continue;
        score_tile(layer, rows, first + i, tile, std::min(tile + kTile, size), scores_[i].data());
      }
    });
    context_.pool.parallel_for(count, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        if (layer.plan.makes_candidates) {
          candidate_blocks(scores_[i], config.candidate_block_size, config.candidate_topk_blocks,
                           candidates_[first + i]);
        }
        choose_entries(layer, first + i, scores_[i]);
      }
    });
    if (observer != nullptr) observe(layer, rows, first, count, *observer);
    first += count;
  }
}

void IndexSelect::observe(const model::Layer& layer, const model::StepRows& rows, std::size_t first,
                          std::size_t count, model::Observer& observer) {
  const std::size_t size = std::max(1, context_.model.config().candidate_block_size);
  for (std::size_t row = first; row < first + count; ++row) {
    const auto entries = static_cast<std::size_t>(visible(layer, rows, row));
    std::vector<float> scores(entries, -std::numeric_limits<float>::infinity());
    for (std::size_t place = 0; place < scores_[row - first].size(); ++place) {
      scores[entry_at(layer, row, static_cast<std::int64_t>(place))] = scores_[row - first][place];
    }
    observer.floats(layer.plan.id, "index_scores", scores, 1, {entries});
    const auto chosen = selection_.of(row);
    std::vector<std::int64_t> padded(selection_.topk, -1);
    std::copy(chosen.begin(), chosen.end(), padded.begin());
    observer.integers(layer.plan.id, "topk", padded, 1, padded.size());
    if (!layer.plan.makes_candidates) continue;
    std::vector<std::int64_t> allowed(entries, candidates_[row].empty() ? 1 : 0);
    for (const std::int64_t block : candidates_[row]) {
      for (std::size_t j = block * size; j < std::min(entries, (block + 1) * size); ++j) allowed[j] = 1;
    }
    observer.integers(layer.plan.id, "candidates", allowed, 1, entries);
  }
}

}  // namespace thalweg::backend::cpu
