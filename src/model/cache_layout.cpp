#include "model/cache_layout.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace thalweg::model {
namespace {

using checkpoint::ModelConfig;

constexpr std::int64_t kSectionAlignment = 32;

std::int64_t round_up(std::int64_t n, std::int64_t to) {
  return (n + to - 1) / to * to;
}

std::int64_t row_bytes(numeric::RowFormat format, int values) {
  return static_cast<std::int64_t>(numeric::row_bytes(format, static_cast<std::size_t>(values)));
}

int ratio_of(const ModelConfig& config, int layer) {
  return config.compress_ratios[static_cast<std::size_t>(layer)];
}

}  // namespace

int default_backtracking(const ModelConfig& config) {
  return config.draft.layers > 0 ? config.draft.block_size + 1 : 1;
}

double global_bytes_per_token(const ModelConfig& config, const CacheFormats& formats) {
  const std::int64_t row =
      row_bytes(formats.compressed, config.head_dim) + row_bytes(formats.index, config.index_head_dim);
  double bytes = 0;
  for (const int layer : config.kv_source_layer_ids)
    bytes += static_cast<double>(row) / ratio_of(config, layer);
  return bytes;
}

PageLayout page_layout(const ModelConfig& config, int tokens, const CacheFormats& formats) {
  PageLayout page{.tokens = tokens, .sections = {}};
  for (const int layer : config.kv_source_layer_ids) {
    PageSection section{.layer = layer, .ratio = ratio_of(config, layer)};
    section.rows = tokens / section.ratio;
    section.index_row_bytes = row_bytes(formats.index, config.index_head_dim);
    section.index_offset = round_up(page.used_bytes, kSectionAlignment);
    section.main_row_bytes = row_bytes(formats.compressed, config.head_dim);
    section.main_offset =
        round_up(section.index_offset + section.rows * section.index_row_bytes, kSectionAlignment);
    page.used_bytes = section.main_offset + section.rows * section.main_row_bytes;
    page.sections.push_back(section);
  }
  // As published: a page is a whole number of main rows, and of 128-byte lines.
  const std::int64_t unit =
      std::lcm(std::int64_t{128}, std::max<std::int64_t>(1, row_bytes(formats.compressed, config.head_dim)));
  page.stride = round_up(page.used_bytes, unit);
  return page;
}

SlotLayout slot_layout(const ModelConfig& config, int backtracking, const CacheFormats& formats) {
  SlotLayout slot{.backtracking = backtracking, .window_offsets = {}, .compressors = {}};
  slot.window_tokens = config.sliding_window + backtracking;
  slot.window_row_bytes = row_bytes(formats.window, config.head_dim);
  slot.window_ring_bytes = slot.window_tokens * slot.window_row_bytes;
  for (int layer = 0; layer < config.layers + config.draft.layers; ++layer) {
    slot.window_offsets.push_back(slot.used_bytes);
    slot.used_bytes += slot.window_ring_bytes;
  }
  slot.used_bytes = round_up(slot.used_bytes, kSectionAlignment);  // the compressor rings hold floats
  // The group under way (2 tokens) and the groups that rows taken back may reopen.
  slot.compressor_tokens = 2 + std::max(0, backtracking - 1);
  for (const int layer : config.kv_source_layer_ids) {
    if (ratio_of(config, layer) != 2) continue;
    const std::int64_t bytes =
        std::int64_t{slot.compressor_tokens} * 2 * config.head_dim * std::int64_t{sizeof(float)};
    slot.compressors.push_back({layer, slot.used_bytes, bytes});
    slot.used_bytes += bytes;
  }
  slot.stride = round_up(slot.used_bytes, std::lcm(kSectionAlignment, slot.window_row_bytes));
  return slot;
}

}  // namespace thalweg::model
