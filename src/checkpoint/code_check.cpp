#include "checkpoint/code_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/error.hpp"

namespace thalweg::checkpoint {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr std::size_t kPiecesPerThread = 64;  // between two reports of progress
constexpr std::size_t kClean = ~std::size_t{0};

// A stretch of one tensor, looked through by one thread.
struct Piece {
  std::size_t tensor;
  std::size_t begin;
  std::size_t end;
};

// A code is a NaN if its bits under the mask are all ones.
std::uint8_t nan_mask(DType dtype) {
  return dtype == DType::e8m0 ? 0xff : 0x7f;
}

std::size_t first_nan(std::span<const std::byte> bytes, std::uint8_t mask) {
  const auto* codes = reinterpret_cast<const std::uint8_t*>(bytes.data());
  std::uint8_t any = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) any |= static_cast<std::uint8_t>((codes[i] & mask) == mask);
  if (any == 0) return kClean;
  const auto* found =
      std::find_if(codes, codes + bytes.size(), [&](std::uint8_t c) { return (c & mask) == mask; });
  return static_cast<std::size_t>(found - codes);
}

std::vector<Piece> split(std::span<const CodedTensor> tensors) {
  std::vector<Piece> pieces;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const std::size_t n = tensors[t].tensor->bytes.size();
    for (std::size_t begin = 0; begin < n; begin += kPieceBytes) {
      pieces.push_back({t, begin, std::min(n, begin + kPieceBytes)});
    }
  }
  return pieces;
}

[[noreturn]] void fail(const CodedTensor& tensor, std::size_t element) {
  const auto code = std::to_integer<unsigned>(tensor.tensor->bytes[element]);
  throw InputError(tensor.where, fmt::format("element {} is a NaN ({} code 0x{:02X})", element,
                                             dtype_name(tensor.tensor->dtype), code));
}

}  // namespace

void check_codes(std::span<const CodedTensor> tensors, ThreadPool& pool, const CheckProgress& progress) {
  const std::vector<Piece> pieces = split(tensors);
  const std::size_t round = kPiecesPerThread * pool.size();
  std::vector<std::size_t> found(round);
  std::int64_t done = 0;
  for (std::size_t first = 0; first < pieces.size(); first += round) {
    const std::size_t count = std::min(round, pieces.size() - first);
    pool.parallel_for(count, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        const Piece& piece = pieces[first + i];
        const StoredTensor& tensor = *tensors[piece.tensor].tensor;
        found[i] =
            first_nan(tensor.bytes.subspan(piece.begin, piece.end - piece.begin), nan_mask(tensor.dtype));
      }
    });
    for (std::size_t i = 0; i < count; ++i) {
      const Piece& piece = pieces[first + i];
      if (found[i] != kClean) fail(tensors[piece.tensor], piece.begin + found[i]);
      done += static_cast<std::int64_t>(piece.end - piece.begin);
    }
    if (progress) progress(done);
  }
}

}  // namespace thalweg::checkpoint
