// Packing runs once, at load: one thread a 32-bit word of the target; it is bound by the memory that it
// reads.
#include "backend/cuda/codec.cuh"
#include "backend/cuda/device.hpp"
#include "backend/cuda/pack.hpp"

namespace thalweg::cuda {
namespace {

struct PackJob {
  SourceMatrix sources[2];  // [0] alone, or gate and up
  bool interleaved;
  int rows;  // of one source
  int columns;
  int column_blocks;
  std::uint8_t* target;
  int* out_of_range;
};

struct SourceRow {
  const SourceMatrix* matrix;
  int row;  // -1: padding
};

// The checkpoint row behind row `row` (0..63) of tile `tile`.
__device__ SourceRow source_row(const PackJob& job, int tile, int row) {
  if (!job.interleaved) {
    const int index = tile * 64 + row;
    return {&job.sources[0], index < job.rows ? index : -1};
  }
  const int channel = tile * 32 + row / 16 * 8 + row % 8;
  return {&job.sources[row / 8 % 2], channel < job.rows ? channel : -1};
}

__device__ std::uint32_t fp8_code(const PackJob& job, int tile, int row, int column) {
  const SourceRow source = source_row(job, tile, row);
  if (source.row < 0 || column >= job.columns) return 0;
  return source.matrix->codes[static_cast<std::size_t>(source.row) * job.columns + column];
}

__device__ std::uint32_t fp8_scale(const PackJob& job, int tile, int row, int column) {
  const SourceRow source = source_row(job, tile, row);
  if (source.row < 0 || column >= job.columns) return 0;
  return source.matrix
      ->scales[static_cast<std::size_t>(source.row / 32) * ((job.columns + 31) / 32) + column / 32];
}

__device__ std::uint32_t fp4_code(const PackJob& job, int tile, int row, int column) {
  const SourceRow source = source_row(job, tile, row);
  if (source.row < 0 || column >= job.columns) return 0;
  const std::uint8_t pair =
      source.matrix->codes[static_cast<std::size_t>(source.row) * (job.columns / 2) + column / 2];
  return column % 2 == 0 ? pair & 15 : pair >> 4;
}

__device__ std::uint32_t fp4_scale(const PackJob& job, int tile, int row, int column) {
  const SourceRow source = source_row(job, tile, row);
  if (source.row < 0 || column >= job.columns) return 0;
  return source.matrix->scales[static_cast<std::size_t>(source.row) * (job.columns / 32) + column / 32];
}

__device__ std::uint32_t checked_scale(const PackJob& job, std::uint32_t scale, int largest) {
  if (scale > static_cast<std::uint32_t>(largest)) *job.out_of_range = 1;
  return scale;
}

// Word `word` of block (tile, block), as codec.cuh describes each format.
__device__ std::uint32_t fp8_word(const PackJob& job, int tile, int block, int word) {
  const int base = block * 64;
  if (word >= 1024) {
    const int half = word - 1024;
    std::uint32_t packed = 0;
    for (int i = 0; half < 2 && i < 4; ++i) {
      const std::uint32_t scale = fp8_scale(job, tile, half * 32 + i % 2 * 8, base + i / 2 * 32);
      packed |= checked_scale(job, scale, Fp8Codec::largest_scale) << (8 * i);
    }
    return packed;
  }
  const int step = word / 512 * 2 + word % 4 / 2;
  const int thread = word / 4 % 128;
  const int row = thread / 32 * 16 + thread % 32 / 4;
  const int column = base + step * 16 + word % 2 * 8 + thread % 4 * 2;
  std::uint32_t packed = 0;
  for (int odd = 0; odd < 2; ++odd) {
    const std::uint32_t upper = fp8_code(job, tile, row, column + odd);
    const std::uint32_t lower = fp8_code(job, tile, row + 8, column + odd);
    packed |=
        ((upper & 128) << 8 | (upper & 127) << 4 | (lower & 128) << 4 | (lower & 0x70) << 8 | (lower & 15))
        << (16 * odd);
  }
  return packed;
}

__device__ std::uint32_t fp4_word(const PackJob& job, int tile, int block, int word) {
  const int base = block * 64;
  if (word >= 512) {
    const int slot = word - 512;
    const int row = slot / 8 * 16 + slot % 8;
    std::uint32_t packed = 0;
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t scale = fp4_scale(job, tile, row + i / 2 * 8, base + i % 2 * 32);
      packed |= checked_scale(job, scale, Fp4Codec::largest_scale) << (8 * i);
    }
    return packed;
  }
  const int thread = word / 4;
  const int row = thread / 32 * 16 + thread % 32 / 4 + word % 4 / 2 * 8;
  const int second = word % 2;
  const int column = base + second * 32 + thread % 4 * 2;
  const auto code = [&](int at) { return fp4_code(job, tile, row, at); };
  std::uint32_t packed = 0;
  for (int odd = 0; odd < 2; ++odd) {
    const int other = column + 1 - odd;
    const std::uint32_t x = code(column - second * 32 + odd + 24);
    const std::uint32_t y = code(column + (1 - second) * 32 + odd + 24);
    const std::uint32_t y_other = code(other + (1 - second) * 32 + 24);
    const std::uint32_t d = second == 0 ? Fp4Codec::first_d(x, y_other) : Fp4Codec::second_d(x, y, y_other);
    packed |= Fp4Codec::fp4_half(code(column + odd), code(column + odd + 8), code(column + odd + 16),
                                 code(other + 16), d)
              << (16 * odd);
  }
  return packed;
}

__device__ std::uint32_t bf16_word(const PackJob& job, int tile, int block, int word) {
  const int thread = word / 4 % 128;
  const int row = thread / 32 * 16 + thread % 32 / 4 + word % 2 * 8;
  const int column = block * 64 + word / 512 * 16 + word % 4 / 2 * 8 + thread % 4 * 2;
  const SourceRow source = source_row(job, tile, row);
  if (source.row < 0 || column >= job.columns) return 0;
  const std::size_t index = static_cast<std::size_t>(source.row) * job.columns + column;
  return reinterpret_cast<const std::uint32_t*>(source.matrix->codes)[index / 2];
}

template <WeightFormat format>
__global__ void pack_kernel(PackJob job, std::size_t words, int words_a_block) {
  const std::size_t index = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= words) return;
  const int word = static_cast<int>(index % words_a_block);
  const int position = static_cast<int>(index / words_a_block);
  const int unit = position / 4;
  const int units_a_row = job.column_blocks / 2;
  const int tile = unit / units_a_row * 2 + position / 2 % 2;
  const int block = unit % units_a_row * 2 + position % 2;
  std::uint32_t value;
  if constexpr (format == WeightFormat::fp8) value = fp8_word(job, tile, block, word);
  if constexpr (format == WeightFormat::fp4) value = fp4_word(job, tile, block, word);
  if constexpr (format == WeightFormat::bf16) value = bf16_word(job, tile, block, word);
  reinterpret_cast<std::uint32_t*>(job.target)[index] = value;
}

void run(const PackedShape& shape, const PackJob& job, cudaStream_t stream) {
  const std::size_t words = shape.bytes() / 4;
  const int words_a_block = static_cast<int>(shape.block_bytes() / 4);
  const unsigned grid = static_cast<unsigned>((words + 255) / 256);
  switch (shape.format) {
    case WeightFormat::fp8:
      pack_kernel<WeightFormat::fp8><<<grid, 256, 0, stream>>>(job, words, words_a_block);
      break;
    case WeightFormat::fp4:
      pack_kernel<WeightFormat::fp4><<<grid, 256, 0, stream>>>(job, words, words_a_block);
      break;
    case WeightFormat::bf16:
      pack_kernel<WeightFormat::bf16><<<grid, 256, 0, stream>>>(job, words, words_a_block);
      break;
  }
  check(cudaGetLastError(), "pack weights");
}

}  // namespace

void pack(const PackedShape& shape, const SourceMatrix& source, std::uint8_t* target, int* out_of_range,
          cudaStream_t stream) {
  run(shape, {{source, {}}, false, shape.rows, shape.columns, shape.column_blocks(), target, out_of_range},
      stream);
}

void pack_gate_up(const PackedShape& shape, const SourceMatrix& gate, const SourceMatrix& up,
                  std::uint8_t* target, int* out_of_range, cudaStream_t stream) {
  run(shape, {{gate, up}, true, shape.rows / 2, shape.columns, shape.column_blocks(), target, out_of_range},
      stream);
}

}  // namespace thalweg::cuda
