// Rotation, quantisation and storage of keys and index queries. Roofline: a row's bytes (1 kB read, 288 or
// 528 written); a warp has a row of 512 to itself, 16 consecutive channels a lane, or one of 128, 4 a lane.
#include "backend/cuda/cache_store.hpp"
#include "backend/cuda/codec.cuh"
#include "backend/cuda/device.hpp"
#include "backend/cuda/operand.hpp"
#include "backend/cuda/quantise.cuh"

namespace thalweg::cuda {
namespace {

constexpr int rotated = 64;  // channels, at the end of a vector
constexpr int warps = 4;     // of a block

__global__ void rotation_kernel(const int* positions, int count, const float* frequencies, float2* out) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= count * (rotated / 2)) return;
  const float angle = static_cast<float>(positions[index / 32]) * frequencies[index % 32];
  double sine;
  double cosine;
  sincos(static_cast<double>(angle), &sine, &cosine);
  out[index] = make_float2(static_cast<float>(cosine), static_cast<float>(sine));
}

// A pair of channels as bf16, rotated.
__device__ __forceinline__ std::uint32_t rotate_pair(std::uint32_t pair, float2 rotation) {
  const float u = ptx::bf16_low(pair);
  const float v = ptx::bf16_high(pair);
  return ptx::bf16x2_round(u * rotation.x - v * rotation.y, u * rotation.y + v * rotation.x);
}

__global__ void rotate_kernel(std::uint32_t* rows, int count, int heads, int width, const float2* rotations) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= count * heads * (rotated / 2)) return;
  const int pair = index % (rotated / 2);
  const int vector = index / (rotated / 2);
  std::uint32_t& at = rows[static_cast<std::size_t>(vector) * (width / 2) + (width - rotated) / 2 + pair];
  at = rotate_pair(at, rotations[vector / heads * (rotated / 2) + pair]);
}

// The lane's `values` consecutive channels of a row of `width`, rotated.
template <int values>
__device__ __forceinline__ void load_rotated(const std::uint16_t* row, int width, const float2* rotations,
                                             int lane, float (&out)[values]) {
  const auto* pairs = reinterpret_cast<const std::uint32_t*>(row) + lane * (values / 2);
#pragma unroll
  for (int i = 0; i < values / 2; ++i) {
    std::uint32_t pair = pairs[i];
    const int channel = lane * values + 2 * i;
    if (channel >= width - rotated) pair = rotate_pair(pair, rotations[(channel - (width - rotated)) / 2]);
    out[2 * i] = ptx::bf16_low(pair);
    out[2 * i + 1] = ptx::bf16_high(pair);
  }
}

template <int values>
__device__ __forceinline__ float largest_of(const float (&list)[values]) {
  float largest = 0.0f;
#pragma unroll
  for (int i = 0; i < values; ++i) largest = fmaxf(largest, fabsf(list[i]));
  return largest;
}

__global__ void __launch_bounds__(32 * warps)
    window_kernel(const std::uint16_t* kv, int stride, int count, const float2* rotations,
                  const StorePlace* places, WindowCache cache) {
  const int row = blockIdx.x * warps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= count || places[row].index < 0) return;
  float values[16];
  load_rotated(kv + static_cast<std::size_t>(row) * stride, head_width, rotations + row * 32, lane, values);
  const std::uint32_t code = fp8_scale_code(largest_of_lanes(largest_of(values), 1));
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float inverse = inverse_scale_value(code);
    words[i] = e4m3x2_round(values[4 * i] * inverse, values[4 * i + 1] * inverse) |
               e4m3x2_round(values[4 * i + 2] * inverse, values[4 * i + 3] * inverse) << 16;
  }
  std::uint8_t* at = cache.base + places[row].owner * cache.slot_stride +
                     static_cast<std::size_t>(places[row].index % cache.ring_rows) * window_row_bytes;
  reinterpret_cast<uint4*>(at)[lane] = make_uint4(words[0], words[1], words[2], words[3]);
  if (lane % 2 == 0) at[head_width + lane / 2] = static_cast<std::uint8_t>(code);
}

__global__ void __launch_bounds__(32 * warps)
    compressed_kernel(const std::uint16_t* latent, int count, const float2* rotations,
                      const StorePlace* places, CompressedCache cache) {
  const int row = blockIdx.x * warps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= count || places[row].index < 0) return;
  float values[16];
  load_rotated(latent + static_cast<std::size_t>(row) * head_width, head_width, rotations + row * 32, lane,
               values);
  // Q_nvfp4_16: the scale itself is E4M3, nearest even; a lane has one group.
  const std::uint32_t scale = e4m3x2_round(fmaxf(largest_of(values), 6.0f * 0x1p-9f) / 6.0f, 0.0f) & 0xFF;
  const float divisor = e4m3_value(scale);
  std::uint32_t words[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < 16; ++i) words[i / 8] |= e2m1_code(values[i] / divisor) << (i % 8 * 4);
  const int page = cache.tables[places[row].owner * cache.table_stride + places[row].index / cache.page_rows];
  std::uint8_t* at = cache.base + page * cache.page_stride +
                     static_cast<std::size_t>(places[row].index % cache.page_rows) * compressed_row_bytes;
  reinterpret_cast<uint2*>(at)[lane] = make_uint2(words[0], words[1]);
  at[256 + lane] = static_cast<std::uint8_t>(scale);
}

// The four channels of a lane as E2M1 codes; `code` is the scale of its group of 32 channels (8 lanes).
__device__ __forceinline__ std::uint32_t quantise_fp4(const float (&values)[4], std::uint32_t& code) {
  code = fp4_scale_code(largest_of_lanes(largest_of(values), 7));
  std::uint32_t codes = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) codes |= e2m1_code(values[i] * inverse_scale_value(code)) << (4 * i);
  return codes;
}

__global__ void __launch_bounds__(32 * warps)
    index_key_kernel(const std::uint16_t* keys, int count, const float2* rotations, const StorePlace* places,
                     IndexKeys cache) {
  __shared__ std::uint8_t all_codes[warps][index_width];
  const int row = blockIdx.x * warps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= count || places[row].index < 0) return;
  float values[4];
  load_rotated(keys + static_cast<std::size_t>(row) * index_width, index_width, rotations + row * 32, lane,
               values);
  std::uint32_t scale;
  const std::uint32_t codes = quantise_fp4(values, scale);
  std::uint8_t* mine = all_codes[threadIdx.x / 32];
#pragma unroll
  for (int i = 0; i < 4; ++i) mine[lane * 4 + i] = codes >> (4 * i) & 15;
  __syncwarp();
  const int index = places[row].index;
  const int page = cache.tables[places[row].owner * cache.table_stride + index / cache.page_keys];
  std::uint8_t* unit = cache.base + page * cache.page_stride +
                       static_cast<std::size_t>(index % cache.page_keys / index_unit_keys) * index_unit_bytes;
  const int key = index % index_unit_keys;
  if (lane < 16) {  // lane: column half, thread of the quad, first or second word
    const int first = lane / 8 * 64;
    const int column = first + lane / 2 % 4 * 2;
    const int second = lane % 2;
    std::uint32_t word = 0;
    for (int odd = 0; odd < 2; ++odd) {
      const int at = column + second * 32;
      const std::uint32_t x = mine[column + 24 + odd];
      const std::uint32_t y = mine[column + 56 + odd];
      const std::uint32_t y_other = mine[column + 56 + 1 - odd];
      const std::uint32_t d = second == 0 ? Fp4Codec::first_d(x, y_other) : Fp4Codec::second_d(x, y, y_other);
      word |= Fp4Codec::fp4_half(mine[at + odd], mine[at + 8 + odd], mine[at + 16 + odd],
                                 mine[at + 16 + 1 - odd], d)
              << (16 * odd);
    }
    reinterpret_cast<std::uint32_t*>(unit + lane / 8 * 256 + (key * 4 + lane / 2 % 4) * 8)[second] = word;
  }
  if (lane % 8 == 0) unit[512 + key * 4 + lane / 8] = static_cast<std::uint8_t>(scale);
}

__global__ void __launch_bounds__(32 * warps)
    index_query_kernel(const std::uint16_t* queries, int vectors, const float2* rotations,
                       std::uint16_t* out) {
  const int vector = blockIdx.x * warps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (vector >= vectors) return;
  float values[4];
  load_rotated(queries + static_cast<std::size_t>(vector) * index_width, index_width,
               rotations + vector / index_heads * 32, lane, values);
  std::uint32_t scale;
  const std::uint32_t codes = quantise_fp4(values, scale);
#pragma unroll
  for (int i = 0; i < 4; ++i) values[i] = e2m1_value(codes >> (4 * i)) * scale_value(scale);
  *reinterpret_cast<uint2*>(out + operand_index(vector, lane * 4, atom_count(vectors))) =
      make_uint2(ptx::bf16x2_round(values[0], values[1]), ptx::bf16x2_round(values[2], values[3]));
}

int blocks_of(int rows) {
  return (rows + warps - 1) / warps;
}

}  // namespace

void make_rotations(const int* positions, int count, const float* frequencies, float2* out,
                    cudaStream_t stream) {
  rotation_kernel<<<(count * 32 + 127) / 128, 128, 0, stream>>>(positions, count, frequencies, out);
  check(cudaGetLastError(), "rotations");
}

void rotate_heads(std::uint16_t* rows, int count, int heads, int width, const float2* rotations,
                  cudaStream_t stream) {
  const int pairs = count * heads * (rotated / 2);
  rotate_kernel<<<(pairs + 255) / 256, 256, 0, stream>>>(reinterpret_cast<std::uint32_t*>(rows), count, heads,
                                                         width, rotations);
  check(cudaGetLastError(), "rotate heads");
}

void store_window_rows(const std::uint16_t* kv, int stride, int count, const float2* rotations,
                       const StorePlace* places, const WindowCache& cache, cudaStream_t stream) {
  window_kernel<<<blocks_of(count), 32 * warps, 0, stream>>>(kv, stride, count, rotations, places, cache);
  check(cudaGetLastError(), "store window rows");
}

void store_compressed_rows(const std::uint16_t* latent, int count, const float2* rotations,
                           const StorePlace* places, const CompressedCache& cache, cudaStream_t stream) {
  compressed_kernel<<<blocks_of(count), 32 * warps, 0, stream>>>(latent, count, rotations, places, cache);
  check(cudaGetLastError(), "store compressed rows");
}

void store_index_keys(const std::uint16_t* keys, int count, const float2* rotations, const StorePlace* places,
                      const IndexKeys& cache, cudaStream_t stream) {
  index_key_kernel<<<blocks_of(count), 32 * warps, 0, stream>>>(keys, count, rotations, places, cache);
  check(cudaGetLastError(), "store index keys");
}

void quantise_index_queries(const std::uint16_t* queries, int count, const float2* rotations,
                            std::uint16_t* out, cudaStream_t stream) {
  const int vectors = count * index_heads;
  index_query_kernel<<<blocks_of(vectors), 32 * warps, 0, stream>>>(queries, vectors, rotations, out);
  check(cudaGetLastError(), "quantise index queries");
}

}  // namespace thalweg::cuda
