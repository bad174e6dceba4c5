// The random integers that NumPy's `default_rng(seed).integers(0, bound)` draws, from which the checkpoint's
// hash multipliers were made. Sources: O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically
// Good Algorithms for Random Number Generation" (2014); Lemire, "Fast Random Integer Generation in an
// Interval" (2019); NumPy's manual on SeedSequence and PCG64.
#pragma once

#include <cstdint>

namespace thalweg::checkpoint {

/// PCG64 (XSL-RR 128/64) seeded through NumPy's SeedSequence.
class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint64_t seed);

  /// Uniform in [0, bound). Equal to NumPy for bound == 1 (no draw) and bound > 2^32; smaller bounds, for
  /// which NumPy draws 32 bits at a time, are not supported.
  std::uint64_t below(std::uint64_t bound);

 private:
  __extension__ using U128 = unsigned __int128;

  std::uint64_t next();

  U128 state_ = 0;
  U128 increment_ = 0;
};

}  // namespace thalweg::checkpoint
