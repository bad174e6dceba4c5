#include "numeric/block_formats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "numeric/e2m1.hpp"
#include "numeric/float8.hpp"

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

// Each format: its group, the code of a group's scale, the value of that scale, and one value to and from its
// code.
struct Fp8Group {
  static constexpr std::size_t kSize = 32;
  static std::uint8_t scale_code(float largest) { return ceil_e8m0(std::max(largest, 1e-4F) / kE4m3Max); }
  static float scale(std::uint8_t code) { return from_e8m0(code); }
};

struct Mxfp4Group {
  static constexpr std::size_t kSize = 32;
  static std::uint8_t scale_code(float largest) { return ceil_e8m0(std::max(largest, 6 * 0x1p-126F) / 6.0F); }
  static float scale(std::uint8_t code) { return from_e8m0(code); }
};

struct Nvfp4Group {
  static constexpr std::size_t kSize = 16;
  static std::uint8_t scale_code(float largest) { return to_e4m3(std::max(largest, 6 * 0x1p-9F) / 6.0F); }
  static float scale(std::uint8_t code) { return from_e4m3(code); }
};

// Nearest E4M3 for |x| <= 448 without branches, so that loops over groups vectorise.
float round_e4m3_in_range(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits & 0x80000000U;
  const std::uint32_t m = bits & 0x7fffffffU;
  const float subnormal = (std::bit_cast<float>(m) + 0x1.8p14F) - 0x1.8p14F;
  const std::uint32_t normal = (m + 0x7ffffU + ((m >> 20) & 1U)) & 0xfff00000U;
  const std::uint32_t rounded = m < 0x3c800000U ? std::bit_cast<std::uint32_t>(subnormal) : normal;
  return std::bit_cast<float>(sign | rounded);
}

void round_fp8(std::span<float> values) {
  for (std::size_t g = 0; g < values.size(); g += Fp8Group::kSize) {
    float* x = values.data() + g;
    const std::size_t n = std::min(Fp8Group::kSize, values.size() - g);
    const float scale = from_e8m0(Fp8Group::scale_code(largest_magnitude(x, n)));
    const float inverse = 1.0F / scale;  // a power of two: exact
    for (std::size_t i = 0; i < n; ++i) x[i] = round_e4m3_in_range(x[i] * inverse) * scale;
  }
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

void unpack_fp8(const std::uint8_t* codes, const std::uint8_t* scales, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); i += Fp8Group::kSize) {
    const float scale = from_e8m0(scales[i / Fp8Group::kSize]);
    for (std::size_t k = i; k < i + Fp8Group::kSize; ++k) {
      const std::uint32_t code = codes[k];
      values[k] = std::bit_cast<float>(((code & 0x80U) << 24) | ((code & 0x7fU) << 20)) * 0x1p120F * scale;
    }
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

template <class Group>
void unpack_fp4(const std::uint8_t* codes, const std::uint8_t* scales, std::span<float> values) {
  for (std::size_t g = 0; g * Group::kSize < values.size(); ++g) {
    const float scale = Group::scale(scales[g]);
    for (std::size_t i = g * Group::kSize; i < (g + 1) * Group::kSize; i += 2) {
      values[i] = kE2m1Values[codes[i / 2] & 15U] * scale;
      values[i + 1] = kE2m1Values[codes[i / 2] >> 4] * scale;
    }
  }
}

template <class Group>
void round_fp4(std::span<float> values) {
  for (std::size_t g = 0; g < values.size(); g += Group::kSize) {
    float* x = values.data() + g;
    const float scale = Group::scale(Group::scale_code(largest_magnitude(x, Group::kSize)));
    for (std::size_t i = 0; i < Group::kSize; ++i) x[i] = kE2m1Values[to_e2m1(x[i] / scale)] * scale;
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

void unpack_row(RowFormat format, const std::uint8_t* codes, const std::uint8_t* scales,
                std::span<float> values) {
  switch (format) {
    case RowFormat::f32:
      std::memcpy(values.data(), codes, values.size_bytes());
      return;
    case RowFormat::fp8_32:
      unpack_fp8(codes, scales, values);
      return;
    case RowFormat::mxfp4_32:
      unpack_fp4<Mxfp4Group>(codes, scales, values);
      return;
    case RowFormat::nvfp4_16:
      unpack_fp4<Nvfp4Group>(codes, scales, values);
      return;
  }
}

void round_row(RowFormat format, std::span<float> values) {
  switch (format) {
    case RowFormat::f32:
      return;
    case RowFormat::fp8_32:
      round_fp8(values);
      return;
    case RowFormat::mxfp4_32:
      round_fp4<Mxfp4Group>(values);
      return;
    case RowFormat::nvfp4_16:
      round_fp4<Nvfp4Group>(values);
      return;
  }
}

}  // namespace thalweg::numeric
