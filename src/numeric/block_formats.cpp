#include "numeric/block_formats.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "numeric/e2m1.hpp"
#include "numeric/row_groups.hpp"

namespace thalweg::numeric {
namespace {

float largest_magnitude(const float* x, std::size_t n) {
  // Integer comparison of the bits orders non-negative floats and vectorises without NaN rules.
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffU);
  }
  return std::bit_cast<float>(largest);
}

void pack_fp8(std::span<const float> values, std::uint8_t* codes, std::uint8_t* scales) {
  for (std::size_t g = 0; g * Fp8Group::kSize < values.size(); ++g) {
    const float* x = values.data() + g * Fp8Group::kSize;
    scales[g] = Fp8Group::scale_code(largest_magnitude(x, Fp8Group::kSize));
    const float inverse = 1.0F / from_e8m0(scales[g]);
    for (std::size_t i = 0; i < Fp8Group::kSize; ++i)
      codes[g * Fp8Group::kSize + i] = to_e4m3(x[i] * inverse);
  }
}

template <class Group>
void pack_fp4(std::span<const float> values, std::uint8_t* codes, std::uint8_t* scales) {
  for (std::size_t g = 0; g * Group::kSize < values.size(); ++g) {
    const float* x = values.data() + g * Group::kSize;
    scales[g] = Group::scale_code(largest_magnitude(x, Group::kSize));
    const float scale = Group::scale(scales[g]);
    for (std::size_t i = 0; i < Group::kSize; i += 2) {
      const unsigned low = to_e2m1(x[i] / scale);
      const unsigned high = to_e2m1(x[i + 1] / scale);
      codes[(g * Group::kSize + i) / 2] = static_cast<std::uint8_t>(low | (high << 4));
    }
  }
}

}  // namespace

const char* row_format_name(RowFormat format) {
  switch (format) {
    case RowFormat::f32:
      return "f32";
    case RowFormat::fp8_32:
      return "fp8_32";
    case RowFormat::mxfp4_32:
      return "mxfp4_32";
    case RowFormat::nvfp4_16:
      return "nvfp4_16";
  }
  return "";
}

std::size_t group_size(RowFormat format) {
  switch (format) {
    case RowFormat::f32:
      return 1;
    case RowFormat::fp8_32:
      return Fp8Group::kSize;
    case RowFormat::mxfp4_32:
      return Mxfp4Group::kSize;
    case RowFormat::nvfp4_16:
      return Nvfp4Group::kSize;
  }
  return 1;
}

std::size_t code_bytes(RowFormat format, std::size_t n) {
  switch (format) {
    case RowFormat::f32:
      return n * sizeof(float);
    case RowFormat::fp8_32:
      return n;
    case RowFormat::mxfp4_32:
    case RowFormat::nvfp4_16:
      return n / 2;
  }
  return 0;
}

std::size_t scale_bytes(RowFormat format, std::size_t n) {
  return format == RowFormat::f32 ? 0 : n / group_size(format);
}

void pack_row(RowFormat format, std::span<const float> values, std::uint8_t* codes, std::uint8_t* scales) {
  switch (format) {
    case RowFormat::f32:
      std::memcpy(codes, values.data(), values.size_bytes());
      return;
    case RowFormat::fp8_32:
      pack_fp8(values, codes, scales);
      return;
    case RowFormat::mxfp4_32:
      pack_fp4<Mxfp4Group>(values, codes, scales);
      return;
    case RowFormat::nvfp4_16:
      pack_fp4<Nvfp4Group>(values, codes, scales);
      return;
  }
}

}  // namespace thalweg::numeric
