// Where every cached value lies: pages of global (compressed) KV and the per-sequence state slot (model specification,
// section 5). One layout for all backends, so that pages and slots can move between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "checkpoint/config.hpp"
#include "numeric/block_formats.hpp"

namespace thalweg::model {

/// How the three kinds of cache rows are stored.
struct CacheFormats {
  numeric::RowFormat window = numeric::RowFormat::fp8_32;
  numeric::RowFormat global = numeric::RowFormat::nvfp4_16;
  numeric::RowFormat index = numeric::RowFormat::mxfp4_32;
};

constexpr int kPageTokens = 128;  ///< tokens whose global KV share a page (a block of the cache)

/// Global KV of one KV-source layer within a page. Index keys lie in two page-wide sections (codes of all entries,
/// then scales of all entries); compressed KV entries are records of codes followed by scales.
struct GlobalSection {
  int layer = 0;
  int ratio = 1;
  int entries = 0;                ///< kPageTokens / ratio
  std::size_t index_codes = 0;    ///< byte offset in the page
  std::size_t index_scales = 0;
  std::size_t main = 0;
  std::size_t index_code_stride = 0;
  std::size_t index_scale_stride = 0;
  std::size_t main_stride = 0;    ///< bytes of one compressed KV record
  std::size_t main_code_bytes = 0;
};

/// Layout of a configuration. All offsets and sizes in bytes.
struct CacheLayout {
  CacheFormats formats;
  std::vector<GlobalSection> global;  ///< in the order of the KV-source layers
  std::size_t page_bytes = 0;         ///< stride of a page
  std::size_t payload_per_token = 0;  ///< global bytes a token without padding, rounded up

  int ring = 0;                     ///< positions in a window ring: window + backtracking; slot = position mod ring
  std::size_t window_stride = 0;    ///< bytes of one window record
  std::size_t window_code_bytes = 0;
  std::size_t window_ring_bytes = 0;
  int window_rings = 0;             ///< backbone layers, then draft layers
  int encoder_rings = 0;            ///< rings of the encoder half come first

  int raw_ring = 0;                 ///< tokens in a compressor ring; slot = position mod raw_ring
  std::size_t raw_stride = 0;       ///< [score head_dim | latent head_dim] in float32
  std::size_t raw_offset = 0;       ///< first compressor ring within the slot
  std::vector<int> raw_layers;      ///< layers with a compressor ring (KV sources of ratio 2), in order
  std::size_t slot_bytes = 0;       ///< stride of a slot

  /// Offset within a slot of the window ring of a layer (draft stage i is layer `layers + i`).
  std::size_t window_offset(int layer) const { return static_cast<std::size_t>(layer) * window_ring_bytes; }
  /// The global section of a KV-source layer.
  const GlobalSection& section(int kv_source_layer) const;
  /// Offset within a slot of the compressor ring of a ratio-2 KV-source layer.
  std::size_t raw_ring_offset(int layer) const;
};

/// `backtracking`: positions a verification may take back; the released engine uses draft block + 1 = 6.
CacheLayout make_cache_layout(const checkpoint::ModelConfig& config, const CacheFormats& formats, int backtracking);

/// Draft block + 1, the least that speculation needs; 1 without a draft model.
int default_backtracking(const checkpoint::ModelConfig& config);

}  // namespace thalweg::model
