// Rows of the key/value caches as the attention kernels read them (model specification, section 5), and where
// they lie.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thalweg::cuda {

constexpr int head_width = 512;            ///< channels of a key
constexpr int window_row_bytes = 528;      ///< 512 E4M3 codes, 16 UE8M0 scales of 32 channels
constexpr int compressed_row_bytes = 288;  ///< 256 bytes of E2M1 pairs, 32 E4M3 scales of 16 channels

/// A layer's sliding windows: the ring of slot s starts at base + s * slot_stride; position p is row p %
/// ring_rows.
struct WindowCache {
  std::uint8_t* base = nullptr;
  std::size_t slot_stride = 0;
  int ring_rows = 0;
};

/// A source layer's compressed rows in pages: entry e of a sequence is row e % page_rows of page table[e /
/// page_rows]; page p starts at base + p * page_stride. Tables of all sequences lie `table_stride` apart.
struct CompressedCache {
  std::uint8_t* base = nullptr;
  std::size_t page_stride = 0;
  int page_rows = 1;
  const int* tables = nullptr;
  int table_stride = 0;
};

}  // namespace thalweg::cuda
