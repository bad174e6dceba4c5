#include "engine/sampling/row_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "base/error.hpp"

namespace thalweg::engine {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::size_t lanes = 16;  // independent maxima, so that the compiler can vectorise the scan

[[noreturn]] void refuse(std::span<const float> logits) {
  const auto bad = std::find_if(logits.begin(), logits.end(), [](float l) { return !(l < infinity); });
  throw WorkError(fmt::format("logits: token {}: expected a finite number or -inf, found {}",
                              std::distance(logits.begin(), bad), *bad));
}

}  // namespace

LargestLogit find_largest(std::span<const float> logits) {
  std::array<float, lanes> largest;
  std::array<std::uint32_t, lanes> bad{};
  largest.fill(-infinity);
  const std::size_t whole = logits.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t j = 0; j < lanes; ++j) {
      const float l = logits[i + j];
      largest[j] = l > largest[j] ? l : largest[j];
      bad[j] |= l < infinity ? 0u : 1u;
    }
  }
  for (std::size_t i = whole; i < logits.size(); ++i) {
    largest[0] = logits[i] > largest[0] ? logits[i] : largest[0];
    bad[0] |= logits[i] < infinity ? 0u : 1u;
  }
  if (std::any_of(bad.begin(), bad.end(), [](std::uint32_t b) { return b != 0; })) refuse(logits);
  const float value = *std::max_element(largest.begin(), largest.end());
  const auto first = std::find(logits.begin(), logits.end(), value);
  return {value, static_cast<std::int32_t>(std::distance(logits.begin(), first))};
}

}  // namespace thalweg::engine
