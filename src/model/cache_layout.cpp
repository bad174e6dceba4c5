#include "model/cache_layout.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "model/layers.hpp"

namespace thalweg::model {
namespace {

constexpr std::size_t kSectionAlignment = 32;

std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

GlobalSection place_section(const checkpoint::ModelConfig& config, const CacheFormats& formats, int layer,
                            std::size_t& offset) {
  const auto take = [&offset](std::size_t bytes) {
    const std::size_t at = round_up(offset, kSectionAlignment);
    offset = at + bytes;
    return at;
  };
  GlobalSection section;
  section.layer = layer;
  section.ratio = config.compress_ratios[layer];
  section.entries = kPageTokens / section.ratio;
  section.index_code_stride = numeric::code_bytes(formats.index, config.index_head_dim);
  section.index_scale_stride = numeric::scale_bytes(formats.index, config.index_head_dim);
  section.main_code_bytes = numeric::code_bytes(formats.global, config.head_dim);
  section.main_stride = numeric::row_bytes(formats.global, config.head_dim);
  section.index_codes = take(section.entries * section.index_code_stride);
  section.index_scales = take(section.entries * section.index_scale_stride);
  section.main = take(section.entries * section.main_stride);
  return section;
}

void place_global(const checkpoint::ModelConfig& config, CacheLayout& layout) {
  std::size_t offset = 0;
  std::size_t payload = 0;
  for (const int layer : config.kv_source_layer_ids) {
    layout.global.push_back(place_section(config, layout.formats, layer, offset));
    const GlobalSection& section = layout.global.back();
    payload += section.entries * (section.index_code_stride + section.index_scale_stride + section.main_stride);
  }
  const std::size_t record = layout.global.empty() ? 1 : layout.global.front().main_stride;
  layout.page_bytes = round_up(offset, std::lcm(std::size_t{kPageTokens}, record));
  layout.payload_per_token = (payload + kPageTokens - 1) / kPageTokens;
}

void place_slot(const checkpoint::ModelConfig& config, int backtracking, CacheLayout& layout) {
  layout.ring = config.sliding_window + backtracking;
  layout.window_code_bytes = numeric::code_bytes(layout.formats.window, config.head_dim);
  layout.window_stride = numeric::row_bytes(layout.formats.window, config.head_dim);
  layout.window_ring_bytes = layout.ring * layout.window_stride;
  layout.window_rings = config.layers + config.draft.layers;
  layout.encoder_rings = first_decoder_layer(config);
  layout.raw_ring = 2 + std::max(0, backtracking - 1);
  layout.raw_stride = 2 * sizeof(float) * config.head_dim;
  layout.raw_offset = round_up(layout.window_rings * layout.window_ring_bytes, kSectionAlignment);
  for (const int layer : config.kv_source_layer_ids) {
    if (config.compress_ratios[layer] == 2) layout.raw_layers.push_back(layer);
  }
  const std::size_t end = layout.raw_offset + layout.raw_layers.size() * layout.raw_ring * layout.raw_stride;
  layout.slot_bytes = round_up(end, std::lcm(kSectionAlignment, layout.window_stride));
}

}  // namespace

const GlobalSection& CacheLayout::section(int kv_source_layer) const {
  for (const GlobalSection& candidate : global) {
    if (candidate.layer == kv_source_layer) return candidate;
  }
  throw std::logic_error("layer has no global section");
}

std::size_t CacheLayout::raw_ring_offset(int layer) const {
  const auto found = std::find(raw_layers.begin(), raw_layers.end(), layer);
  if (found == raw_layers.end()) throw std::logic_error("layer has no compressor ring");
  return raw_offset + static_cast<std::size_t>(found - raw_layers.begin()) * raw_ring * raw_stride;
}

CacheLayout make_cache_layout(const checkpoint::ModelConfig& config, const CacheFormats& formats, int backtracking) {
  CacheLayout layout;
  layout.formats = formats;
  place_global(config, layout);
  place_slot(config, backtracking, layout);
  return layout;
}

int default_backtracking(const checkpoint::ModelConfig& config) {
  return config.draft.layers > 0 ? config.draft.block_size + 1 : 1;
}

}  // namespace thalweg::model
