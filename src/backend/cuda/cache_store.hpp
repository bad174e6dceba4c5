// Rotating, quantising and storing keys: one launch from normed bf16 vectors to cache rows.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/cache_rows.hpp"
#include "backend/cuda/indexer.hpp"

namespace thalweg::cuda {

/// Cosine and sine of `count` positions for rotary frequencies `frequencies` [32] (model specification, 3.1):
/// out[i, f] = (cos, sin) of the fp32 product position * frequency. `positions` and `frequencies` in device
/// memory.
void make_rotations(const int* positions, int count, const float* frequencies, float2* out,
                    cudaStream_t stream);

/// Rotates the last 64 channels of each of `heads` vectors of `width` values a row, in place; bf16.
void rotate_heads(std::uint16_t* rows, int count, int heads, int width, const float2* rotations,
                  cudaStream_t stream);

/// Where a row goes: window ring row (slot, position) or entry of a sequence's pages; negative: nowhere.
struct StorePlace {
  int owner;  ///< window slot or sequence
  int index;  ///< position or entry
};

/// Sliding-window keys: kv [count, 512] (`stride` values from row to row) rotated, Q_fp8_32, stored as
/// 528-byte rows.
void store_window_rows(const std::uint16_t* kv, int stride, int count, const float2* rotations,
                       const StorePlace* places, const WindowCache& cache, cudaStream_t stream);

/// Compressed keys: latent [count, 512] rotated, Q_nvfp4_16, stored as 288-byte rows.
void store_compressed_rows(const std::uint16_t* latent, int count, const float2* rotations,
                           const StorePlace* places, const CompressedCache& cache, cudaStream_t stream);

/// Index keys: [count, 128] normed, rotated, Q_mxfp4_32, stored into their units of 8 keys. Two rows of one
/// launch may share a unit.
void store_index_keys(const std::uint16_t* keys, int count, const float2* rotations, const StorePlace* places,
                      const IndexKeys& cache, cudaStream_t stream);

/// Index queries: [count, 32, 128] rotated, Q_mxfp4_32, widened to an operand of count * 32 rows and 128
/// columns.
void quantise_index_queries(const std::uint16_t* queries, int count, const float2* rotations,
                            std::uint16_t* out, cudaStream_t stream);

}  // namespace thalweg::cuda
