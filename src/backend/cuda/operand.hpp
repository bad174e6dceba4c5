// Activations as the matrix kernels read them: bf16 values in the order in which the matrix unit wants them
// in shared memory, so that a tile is one contiguous copy.
//
// Columns are cut into slices of 128 values, rows into atoms of 8. Slice s, atom a lies at (s * atoms + a) *
// 2048 bytes: two halves of 64 columns, each 8 rows of 128 bytes whose 16-byte chunks are permuted by the
// 128-byte swizzle (chunk c of row r at c ^ r). Columns are padded to whole slices with zeros; rows of the
// last atom beyond `rows` may hold anything, finite or not: rows never mix.
//
// The input of an FP8 or FP4 product is quantised to E4M3 with one power-of-two scale per 32 columns (model
// specification, section 4). What is stored here is that quantised value times its scale, which bf16 holds
// exactly.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define THALWEG_HOST_DEVICE __host__ __device__
#else
#define THALWEG_HOST_DEVICE
#endif

namespace thalweg::cuda {

constexpr int operand_slice = 128;        ///< columns of a slice
constexpr int operand_atom = 8;           ///< rows of an atom
constexpr int operand_atom_bytes = 2048;  ///< 8 rows of 128 bf16 values

/// Columns after padding.
THALWEG_HOST_DEVICE constexpr int padded_columns(int columns) {
  return (columns + 127) / 128 * 128;
}
THALWEG_HOST_DEVICE constexpr int atom_count(int rows) {
  return (rows + operand_atom - 1) / operand_atom;
}

/// Number of bf16 values an operand of this shape occupies.
THALWEG_HOST_DEVICE constexpr std::size_t operand_values(int rows, int columns) {
  return std::size_t{operand_atom} * atom_count(rows) * padded_columns(columns);
}

/// Index of value (row, column) of an operand with `atoms` atoms a slice.
THALWEG_HOST_DEVICE constexpr std::size_t operand_index(int row, int column, int atoms) {
  const int slice = column / operand_slice;
  const int half = column % operand_slice / 64;
  const int chunk = column % 64 / 8;
  return (static_cast<std::size_t>(slice) * atoms + row / operand_atom) * 1024 + half * 512 +
         row % operand_atom * 64 + ((chunk ^ (row % operand_atom)) * 8) + column % 8;
}

}  // namespace thalweg::cuda
