// Records of the caches as kernels read them.
#pragma once

#include "backend/cuda/general/cache_rows.hpp"
#include "backend/cuda/general/values.cuh"

namespace thalweg::cuda::general {

/// Codes and scales of a stored row.
struct Record {
  std::uint8_t* codes;
  std::uint8_t* scales;
};

__device__ __forceinline__ Record window_record(const WindowRings& rings, int slot, std::int64_t position) {
  std::uint8_t* row = rings.base + slot * rings.slot_stride +
                      static_cast<std::size_t>(position % rings.tokens) * rings.row_bytes;
  return {row, row + rings.code_bytes};
}

__device__ __forceinline__ Record page_record(const PageRows& pages, const std::int32_t* blocks,
                                              std::int64_t entry) {
  std::uint8_t* page = pages.base + blocks[entry / pages.rows] * pages.page_stride;
  const std::int64_t row = entry % pages.rows;
  return {page + row * pages.code_stride, page + pages.scale_offset + row * pages.scale_stride};
}

__device__ __forceinline__ float* raw_record(const RawRings& rings, int slot, std::int64_t position) {
  return reinterpret_cast<float*>(rings.base + slot * rings.slot_stride +
                                  static_cast<std::size_t>(position % rings.tokens) * rings.row_bytes);
}

}  // namespace thalweg::cuda::general
