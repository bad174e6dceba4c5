// Rows of a step and records of the caches as the kernels find and store them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/general/rows.hpp"
#include "numeric/block_formats.hpp"

namespace thalweg::cuda::general {

/// A row and the range of rows of its sequence that it is in.
struct StepRow {
  std::int64_t position = 0;
  std::int64_t range_position = 0;  ///< of the first row of the range
  std::int64_t encoder_floor = 0;
  std::int64_t decoder_floor = 0;
  std::int32_t range_first = 0;  ///< row
  std::int32_t range_count = 0;
  std::int32_t slot = 0;
  std::int32_t blocks = 0;  ///< start of the sequence's block table
};

/// Window rings of one layer: ring of slot s at base + s * slot_stride, position p in row p % tokens.
struct WindowRings {
  std::uint8_t* base = nullptr;
  std::size_t slot_stride = 0;
  int tokens = 0;
  int row_bytes = 0;
  int code_bytes = 0;
  int width = 0;
  numeric::RowFormat format = numeric::RowFormat::f32;
};

/// Compressor rings of one layer: scores, then latents, `width` floats each, of a position.
struct RawRings {
  std::uint8_t* base = nullptr;
  std::size_t slot_stride = 0;
  int tokens = 0;
  int row_bytes = 0;
};

/// Rows of one kind (compressed KV or index keys) of a KV-source layer in its pages.
struct PageRows {
  std::uint8_t* base = nullptr;  ///< codes of row 0 in page 0
  std::size_t page_stride = 0;
  int rows = 1;  ///< a page
  int code_stride = 0;
  std::size_t scale_offset = 0;  ///< scales of row 0, from its codes
  int scale_stride = 0;
  int width = 0;
  numeric::RowFormat format = numeric::RowFormat::f32;
};

/// A compressed entry that a step completes.
struct Entry {
  std::int64_t index = 0;  ///< entry number in its sequence
  std::int32_t row = 0;    ///< the row that completes it
  std::int32_t first = 0;  ///< first row of its range
  std::int32_t slot = 0;
  std::int32_t blocks = 0;
};

/// Stores the rows' window records [rows, width]; of each range only as many as a ring holds.
void store_windows(const WindowRings& rings, const StepRow* rows, const Rows& values);
/// Stores entries' vectors [entries, width] in their pages.
void store_entries(const PageRows& pages, const Entry* entries, const std::int32_t* blocks,
                   const Rows& values);

}  // namespace thalweg::cuda::general
