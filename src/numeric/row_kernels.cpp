// Rounding and unpacking of rows (block_formats.hpp), compiled for several instruction sets and chosen at run
// time: the engine does both for every row it computes.
#include <algorithm>
#include <bit>
#include <cstring>

#include "numeric/block_formats.hpp"
#include "numeric/row_groups.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numeric/row_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace thalweg::numeric::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using I = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
constexpr std::size_t kLanes = HWY_MIN(HWY_LANES(float), 16);

// Integer comparison of the bits orders magnitudes without rules for NaN.
template <std::size_t kSize>
HWY_INLINE float largest_magnitude(const float* x) {
  auto largest = hn::Zero(I());
  for (std::size_t i = 0; i < kSize; i += kLanes) {
    const auto bits = hn::BitCast(I(), hn::LoadU(D(), x + i));
    largest = hn::Max(largest, hn::And(bits, hn::Set(I(), 0x7fffffff)));
  }
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(I(), largest)));
}

// Nearest E4M3 of values up to 448 in magnitude.
HWY_INLINE V nearest_e4m3(V x) {
  const auto bits = hn::BitCast(I(), x);
  const auto m = hn::And(bits, hn::Set(I(), 0x7fffffff));
  const V ulp = hn::Set(D(), 0x1.8p14F);  // steps of 2^-9, those of the subnormals
  const auto subnormal = hn::BitCast(I(), hn::Sub(hn::Add(hn::BitCast(D(), m), ulp), ulp));
  const auto odd = hn::And(hn::ShiftRight<20>(m), hn::Set(I(), 1));
  const auto up = hn::Add(hn::Add(m, hn::Set(I(), 0x7ffff)), odd);
  const auto normal = hn::And(up, hn::Set(I(), -0x100000));
  const auto rounded = hn::IfThenElse(hn::Lt(m, hn::Set(I(), 0x3c800000)), subnormal, normal);
  return hn::CopySignToAbs(hn::BitCast(D(), rounded), x);
}

// Nearest E2M1, ties to the even code, NaN as 6.
HWY_INLINE V nearest_e2m1(V x) {
  const V m = hn::Abs(x);
  const auto above = [&](float limit, float step) HWY_ATTR {
    return hn::IfThenElseZero(hn::Not(hn::Le(m, hn::Set(D(), limit))), hn::Set(D(), step));
  };
  const auto from = [&](float limit, float step) HWY_ATTR {
    return hn::IfThenElseZero(hn::Not(hn::Lt(m, hn::Set(D(), limit))), hn::Set(D(), step));
  };
  const V halves =
      hn::Add(hn::Add(above(0.25F, 0.5F), from(0.75F, 0.5F)), hn::Add(above(1.25F, 0.5F), from(1.75F, 0.5F)));
  const V wholes = hn::Add(hn::Add(above(2.5F, 1.0F), from(3.5F, 1.0F)), above(5.0F, 2.0F));
  return hn::CopySignToAbs(hn::Add(halves, wholes), x);
}

HWY_INLINE void round_group(Fp8Group, float* x) {
  const float scale = from_e8m0(Fp8Group::scale_code(largest_magnitude<Fp8Group::kSize>(x)));
  const V inverse = hn::Set(D(), 1.0F / scale);  // a power of two: exact
  for (std::size_t i = 0; i < Fp8Group::kSize; i += kLanes) {
    const V rounded = nearest_e4m3(hn::Mul(hn::LoadU(D(), x + i), inverse));
    hn::StoreU(hn::Mul(rounded, hn::Set(D(), scale)), D(), x + i);
  }
}

template <class Group>
HWY_INLINE void round_group(Group, float* x) {
  const V scale = hn::Set(D(), Group::scale(Group::scale_code(largest_magnitude<Group::kSize>(x))));
  for (std::size_t i = 0; i < Group::kSize; i += kLanes) {
    hn::StoreU(hn::Mul(nearest_e2m1(hn::Div(hn::LoadU(D(), x + i), scale)), scale), D(), x + i);
  }
}

template <class Group>
HWY_INLINE void round_groups(std::span<float> values) {
  const std::size_t whole = values.size() / Group::kSize * Group::kSize;
  for (std::size_t g = 0; g < whole; g += Group::kSize) round_group(Group(), values.data() + g);
  if (whole == values.size()) return;
  float last[Group::kSize] = {};
  std::copy(values.begin() + static_cast<std::ptrdiff_t>(whole), values.end(), last);
  round_group(Group(), last);
  std::copy_n(last, values.size() - whole, values.data() + whole);
}

HWY_INLINE void unpack_group(Fp8Group, const std::uint8_t* codes, float scale, float* out) {
  const hn::Rebind<std::uint8_t, D> d8;
  for (std::size_t i = 0; i < Fp8Group::kSize; i += kLanes) {
    const auto code = hn::PromoteTo(I(), hn::LoadU(d8, codes + i));
    const auto sign = hn::ShiftLeft<24>(hn::And(code, hn::Set(I(), 0x80)));
    const auto magnitude = hn::ShiftLeft<20>(hn::And(code, hn::Set(I(), 0x7f)));
    // Read as a float with a bias 120 too small (float8.hpp).
    const V tiny = hn::BitCast(D(), hn::Or(sign, magnitude));
    hn::StoreU(hn::Mul(hn::Mul(tiny, hn::Set(D(), 0x1p120F)), hn::Set(D(), scale)), D(), out + i);
  }
}

template <class Group>
HWY_INLINE void unpack_group(Group, const std::uint8_t* codes, float scale, float* out) {
  // The upper bytes of the values as half floats; their lower bytes are zero.
  alignas(16) static constexpr std::uint8_t kUpper[16] = {0x00, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46,
                                                          0x80, 0xb8, 0xbc, 0xbe, 0xc0, 0xc2, 0xc4, 0xc6};
  const hn::Full128<std::uint16_t> d16;
  const hn::Full128<std::uint8_t> d8;
  const hn::Rebind<std::uint8_t, decltype(d16)> packed;
  const hn::Rebind<std::uint8_t, D> narrow;
  const hn::Rebind<std::uint16_t, D> wide;
  const hn::Rebind<hwy::float16_t, D> half;
  const auto table = hn::Load(d8, kUpper);
  alignas(16) std::uint8_t upper[16];
  for (std::size_t i = 0; i < Group::kSize; i += 16) {
    // A byte holds the codes of two columns, the lower in its low half: spread over two bytes.
    const auto pair = hn::PromoteTo(d16, hn::LoadU(packed, codes + i / 2));
    const auto both = hn::And(hn::Or(pair, hn::ShiftLeft<4>(pair)), hn::Set(d16, 0x0f0f));
    hn::Store(hn::TableLookupBytes(table, hn::BitCast(d8, both)), d8, upper);
    for (std::size_t v = 0; v < 16; v += kLanes) {
      const auto bits = hn::ShiftLeft<8>(hn::PromoteTo(wide, hn::LoadU(narrow, upper + v)));
      const V value = hn::PromoteTo(D(), hn::BitCast(half, bits));
      hn::StoreU(hn::Mul(value, hn::Set(D(), scale)), D(), out + i + v);
    }
  }
}

template <class Group>
HWY_INLINE void unpack_groups(const std::uint8_t* codes, const std::uint8_t* scales,
                              std::span<float> values) {
  for (std::size_t g = 0; g < values.size() / Group::kSize; ++g) {
    unpack_group(Group(), codes + code_bytes(Group::kFormat, g * Group::kSize), Group::scale(scales[g]),
                 values.data() + g * Group::kSize);
  }
}

void RoundRow(RowFormat format, std::span<float> values) {
  switch (format) {
    case RowFormat::f32:
      return;
    case RowFormat::fp8_32:
      return round_groups<Fp8Group>(values);
    case RowFormat::mxfp4_32:
      return round_groups<Mxfp4Group>(values);
    case RowFormat::nvfp4_16:
      return round_groups<Nvfp4Group>(values);
  }
}

void UnpackRow(RowFormat format, const std::uint8_t* codes, const std::uint8_t* scales,
               std::span<float> values) {
  switch (format) {
    case RowFormat::f32:
      std::memcpy(values.data(), codes, values.size_bytes());
      return;
    case RowFormat::fp8_32:
      return unpack_groups<Fp8Group>(codes, scales, values);
    case RowFormat::mxfp4_32:
      return unpack_groups<Mxfp4Group>(codes, scales, values);
    case RowFormat::nvfp4_16:
      return unpack_groups<Nvfp4Group>(codes, scales, values);
  }
}

}  // namespace thalweg::numeric::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thalweg::numeric {

HWY_EXPORT(RoundRow);
HWY_EXPORT(UnpackRow);

void round_row(RowFormat format, std::span<float> values) {
  HWY_DYNAMIC_DISPATCH(RoundRow)(format, values);
}

void unpack_row(RowFormat format, const std::uint8_t* codes, const std::uint8_t* scales,
                std::span<float> values) {
  HWY_DYNAMIC_DISPATCH(UnpackRow)(format, codes, scales, values);
}

}  // namespace thalweg::numeric
#endif
