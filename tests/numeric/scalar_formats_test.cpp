// Every code of every small format, and every bfloat16 through every rounding, against definitions written
// out in double precision and against golden vectors.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "numeric/bf16.hpp"
#include "numeric/e2m1.hpp"
#include "numeric/float8.hpp"
#include "numeric/golden_file.hpp"

namespace thalweg::numeric {
namespace {

using testing::golden_file;
using testing::golden_values;

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// sign, exponent and mantissa fields by the format's definition.
double e4m3_by_definition(int code) {
  const int exponent = code >> 3 & 15;
  const int mantissa = code & 7;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code & 0x80 ? -magnitude : magnitude;
}

double e2m1_by_definition(int code) {
  const int exponent = code >> 1 & 3;
  const int mantissa = code & 1;
  const double magnitude = exponent == 0 ? 0.5 * mantissa : std::ldexp(2 + mantissa, exponent - 2);
  return code & 8 ? -magnitude : magnitude;
}

// Nearest of codes [0, count) by value, the even code where two are equally near; the sign bit is added for
// negatives.
int nearest_code(double value, int count, int sign_bit, const std::function<double(int)>& decode) {
  const double magnitude =
      std::min(std::fabs(value), decode(count - 1));  // saturates; also keeps the differences exact
  int best = 0;
  for (int code = 1; code < count; ++code) {
    const double better = std::fabs(decode(best) - magnitude) - std::fabs(decode(code) - magnitude);
    if (better > 0 || (better == 0 && code % 2 == 0)) best = code;
  }
  return std::signbit(value) ? best | sign_bit : best;
}

int nearest_e4m3(double value) {
  return nearest_code(value, 0x7f, 0x80, e4m3_by_definition);
}
int nearest_e2m1(double value) {
  return nearest_code(value, 8, 8, e2m1_by_definition);
}

// Every bfloat16 that is not a NaN.
template <class Check>
void for_every_bf16(const Check& check) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = from_bf16(static_cast<std::uint16_t>(bits));
    if (!std::isnan(value)) check(value);
  }
}

TEST(Bf16, EveryCodeSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = from_bf16(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(round_bf16(value)));
    } else {
      ASSERT_EQ(to_bf16(value), bits);
    }
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t high = 0; high < 65536; ++high) {
    if ((high & 0x7f80) == 0x7f80) continue;  // infinities and NaN
    const std::uint32_t up = high + 1;        // also right where the carry reaches the exponent or infinity
    const auto rounded = [&](std::uint32_t low) {
      return std::uint32_t{to_bf16(std::bit_cast<float>(high << 16 | low))};
    };
    ASSERT_EQ(rounded(0x0001), high);
    ASSERT_EQ(rounded(0x7fff), high);
    ASSERT_EQ(rounded(0x8000), high % 2 == 0 ? high : up);
    ASSERT_EQ(rounded(0x8001), up);
    ASSERT_EQ(rounded(0xffff), up);
  }
}

TEST(Bf16, KeepsInfinityAndNaNApart) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(round_bf16(infinity), infinity);
  EXPECT_EQ(round_bf16(std::numeric_limits<float>::max()), infinity);
  for (const std::uint32_t nan : {0x7f800001U, 0x7fc00000U, 0x7fffffffU, 0xff800001U, 0xffffffffU}) {
    EXPECT_TRUE(std::isnan(round_bf16(std::bit_cast<float>(nan)))) << nan;
  }
}

TEST(E4m3, EveryCodeHasItsDefinedValue) {
  for (int code = 0; code < 256; ++code) {
    const float value = from_e4m3(static_cast<std::uint8_t>(code));
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_TRUE(same_bits(value, static_cast<float>(e4m3_by_definition(code)))) << code;
      EXPECT_EQ(to_e4m3(value), code);
      EXPECT_TRUE(same_bits(round_e4m3(value), value)) << code;
    }
  }
}

TEST(E4m3, RoundsEveryBf16ToTheNearestCode) {
  for_every_bf16([](float value) {
    const int code = nearest_e4m3(value);
    ASSERT_EQ(to_e4m3(value), code) << value;
    ASSERT_TRUE(same_bits(round_e4m3(value), from_e4m3(static_cast<std::uint8_t>(code)))) << value;
  });
}

TEST(E4m3, TiesGoToTheEvenCodeAndNeighboursOfTiesDoNot) {
  for (int code = 0; code < 0x7e; ++code) {
    const auto tie = static_cast<float>((e4m3_by_definition(code) + e4m3_by_definition(code + 1)) / 2);
    EXPECT_EQ(to_e4m3(tie), code % 2 == 0 ? code : code + 1) << tie;
    EXPECT_EQ(to_e4m3(std::nextafter(tie, 0.0F)), code);
    EXPECT_EQ(to_e4m3(std::nextafter(tie, 500.0F)), code + 1);
    EXPECT_EQ(to_e4m3(-tie), (code % 2 == 0 ? code : code + 1) | 0x80);
  }
}

TEST(E4m3, SaturatesAndPassesNaN) {
  EXPECT_EQ(to_e4m3(1e30F), 0x7e);
  EXPECT_EQ(to_e4m3(-std::numeric_limits<float>::infinity()), 0xfe);
  EXPECT_EQ(to_e4m3(std::numeric_limits<float>::quiet_NaN()) & 0x7f, 0x7f);
}

TEST(E4m3, EqualsTheGoldenVectors) {
  const auto file = golden_file("fp8_e4m3");
  const auto codes = golden_values<std::uint8_t>(file, "codes");
  const auto values = golden_values<float>(file, "values");
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const float value = from_e4m3(codes[i]);
    EXPECT_TRUE(std::isnan(values[i]) ? std::isnan(value) : same_bits(value, values[i])) << i;
  }
  const auto input = golden_values<float>(file, "encode_input");
  const auto encoded = golden_values<std::uint8_t>(file, "encode_codes");
  for (std::size_t i = 0; i < input.size(); ++i) EXPECT_EQ(to_e4m3(input[i]), encoded[i]) << input[i];
}

TEST(E8m0, EveryCodeIsItsPowerOfTwo) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(from_e8m0(static_cast<std::uint8_t>(code)), std::ldexp(1.0, code - 127)) << code;
  }
  EXPECT_TRUE(std::isnan(from_e8m0(255)));
}

TEST(E8m0, IsTheSmallestPowerOfTwoNotBelowEveryPositiveNormalBf16) {
  for_every_bf16([](float value) {
    if (!(value >= std::numeric_limits<float>::min()) || value > 0x1p127F) return;
    const int code = ceil_e8m0(value);
    ASSERT_GE(std::ldexp(1.0, code - 127), value);
    ASSERT_LT(std::ldexp(1.0, code - 128), value);
  });
}

TEST(E8m0, EqualsTheGoldenVectors) {
  const auto file = golden_file("ue8m0");
  const auto values = golden_values<float>(file, "values");
  const auto codes = golden_values<std::uint8_t>(file, "codes");
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const float value = from_e8m0(codes[i]);
    EXPECT_TRUE(std::isnan(values[i]) ? std::isnan(value) : same_bits(value, values[i])) << i;
  }
  const auto amax = golden_values<float>(file, "amax");
  const auto fp8 = golden_values<std::uint8_t>(file, "scale_code_fp8");
  const auto fp4 = golden_values<std::uint8_t>(file, "scale_code_fp4");
  for (std::size_t i = 0; i < amax.size(); ++i) {
    EXPECT_EQ(ceil_e8m0(amax[i] / 448.0F), fp8[i]) << amax[i];
    EXPECT_EQ(ceil_e8m0(amax[i] / 6.0F), fp4[i]) << amax[i];
  }
}

TEST(E2m1, EveryCodeHasItsDefinedValue) {
  for (int code = 0; code < 16; ++code) {
    const float value = from_e2m1(static_cast<std::uint8_t>(code));
    EXPECT_TRUE(same_bits(value, static_cast<float>(e2m1_by_definition(code)))) << code;
    EXPECT_EQ(to_e2m1(value), code);
  }
}

TEST(E2m1, RoundsEveryBf16ToTheNearestCode) {
  for_every_bf16([](float value) { ASSERT_EQ(to_e2m1(value), nearest_e2m1(value)) << value; });
}

TEST(E2m1, TiesGoToTheEvenCodeAndNeighboursOfTiesDoNot) {
  const float ties[] = {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F};
  const float rounded[] = {0, 1, 1, 2, 2, 4, 4};
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(from_e2m1(to_e2m1(ties[i])), rounded[i]);
    EXPECT_EQ(to_e2m1(std::nextafter(ties[i], 0.0F)), i);
    EXPECT_EQ(to_e2m1(std::nextafter(ties[i], 9.0F)), i + 1);
    EXPECT_EQ(to_e2m1(-ties[i]), to_e2m1(ties[i]) | 8);
  }
  EXPECT_EQ(to_e2m1(std::numeric_limits<float>::infinity()), 7);
  EXPECT_EQ(to_e2m1(-1e30F), 15);
}

TEST(E2m1, EqualsTheGoldenVectors) {
  const auto file = golden_file("fp4_e2m1");
  const auto values = golden_values<float>(file, "values");
  const auto codes = golden_values<std::uint8_t>(file, "codes");
  for (std::size_t i = 0; i < codes.size(); ++i) EXPECT_TRUE(same_bits(from_e2m1(codes[i]), values[i])) << i;
  const auto input = golden_values<float>(file, "encode_input");
  const auto encoded = golden_values<std::uint8_t>(file, "encode_codes");
  for (std::size_t i = 0; i < input.size(); ++i) EXPECT_EQ(to_e2m1(input[i]), encoded[i]) << input[i];
}

}  // namespace
}  // namespace thalweg::numeric
