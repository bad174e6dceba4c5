// Where a sequence's cached rows lie: pages of global rows, and one state slot. Source: model specification,
// section 5.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/config.hpp"
#include "numeric/block_formats.hpp"

namespace thalweg::model {

/// Formats in which caches hold their rows. As published by default; `f32` rows serve precision `float`.
struct CacheFormats {
  numeric::RowFormat window = numeric::RowFormat::fp8_32;        ///< sliding windows, head_dim values a row
  numeric::RowFormat compressed = numeric::RowFormat::nvfp4_16;  ///< compressed KV, head_dim values a row
  numeric::RowFormat index = numeric::RowFormat::mxfp4_32;       ///< index keys, index_head_dim values a row
};

/// Rows of one KV source inside a page. Offsets count bytes from the start of the page and are multiples
/// of 32.
struct PageSection {
  int layer = 0;
  int ratio = 0;  ///< tokens a row
  int rows = 0;   ///< rows a page: page tokens / ratio

  // Index keys: the codes of all rows, then the scales of all rows.
  std::int64_t index_offset = 0;
  std::int64_t index_row_bytes = 0;  ///< codes and scales together

  // Compressed KV: row by row, each its codes, then its scales.
  std::int64_t main_offset = 0;
  std::int64_t main_row_bytes = 0;
};

/// A page: the global rows of `tokens` consecutive tokens, of all KV sources.
struct PageLayout {
  int tokens = 0;
  std::vector<PageSection> sections;  ///< in the order of kv_source_layer_ids
  std::int64_t used_bytes = 0;        ///< end of the last section
  std::int64_t stride = 0;  ///< `used_bytes` rounded up so that pages keep tokens and main rows aligned
};

/// The raw inputs of a ratio-2 compressor for the last tokens, so that a group can be redone: ring slot =
/// position mod `tokens`; a slot holds head_dim float gates, then head_dim float latents.
struct CompressorRing {
  int layer = 0;
  std::int64_t offset = 0;  ///< bytes from the start of the slot
  std::int64_t bytes = 0;
};

/// A state slot: what a sequence keeps besides its pages, of fixed size. Window rings of backbone and draft
/// layers come first, in layer order, then the compressor rings.
struct SlotLayout {
  int backtracking = 0;                      ///< rows that may be taken back after they were written
  int window_tokens = 0;                     ///< slots of a window ring: sliding window + backtracking
  std::int64_t window_row_bytes = 0;         ///< codes, then scales
  std::int64_t window_ring_bytes = 0;        ///< of one layer
  std::vector<std::int64_t> window_offsets;  ///< [layers + draft layers]
  int compressor_tokens = 0;                 ///< slots of a compressor ring
  std::vector<CompressorRing> compressors;   ///< ratio-2 KV sources
  std::int64_t used_bytes = 0;
  std::int64_t stride = 0;  ///< `used_bytes` rounded up so that slots keep rows aligned
};

/// Tokens a page holds as published.
inline constexpr int kPageTokens = 128;

/// Rows a verification step may take back: a draft block and the token before it; 1 without a draft model.
int default_backtracking(const checkpoint::ModelConfig& config);

/// Bytes of global rows a token adds, averaged over a whole compression group (890 as published). Never
/// padded.
double global_bytes_per_token(const checkpoint::ModelConfig& config, const CacheFormats& formats = {});

/// `tokens` must be a positive even number.
PageLayout page_layout(const checkpoint::ModelConfig& config, int tokens = kPageTokens,
                       const CacheFormats& formats = {});

/// `backtracking` must be at least 1.
SlotLayout slot_layout(const checkpoint::ModelConfig& config, int backtracking,
                       const CacheFormats& formats = {});

}  // namespace thalweg::model
