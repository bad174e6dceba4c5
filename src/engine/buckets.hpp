// Observations counted by size, for statistics that are copied as a whole.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace thalweg::engine {

inline constexpr std::array kSecondBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,  0.25,
                                             0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0, 300.0};
inline constexpr std::array kRowBounds = {1.0,  2.0,   4.0,   8.0,   16.0,   32.0,
                                          64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0};

/// counts[i] observations were at most kBounds[i] and above the bound before; the last count has those above
/// all bounds. One thread.
template <const auto& kBounds>
struct Buckets {
  static constexpr std::size_t kCount = kBounds.size() + 1;
  std::array<std::uint64_t, kCount> counts{};
  double sum = 0;

  void observe(double value) {
    ++counts[static_cast<std::size_t>(std::ranges::lower_bound(kBounds, value) - kBounds.begin())];
    sum += value;
  }
  static constexpr const auto& bounds() { return kBounds; }
};

}  // namespace thalweg::engine
