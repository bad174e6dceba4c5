#include "checkpoint/numpy_random.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <limits>

namespace thalweg::checkpoint {
namespace {

constexpr std::size_t kPoolSize = 4;

// Turns a word and a running constant into well-mixed bits; the constant moves on with each word.
class WordHash {
 public:
  WordHash(std::uint32_t constant, std::uint32_t multiplier) : constant_(constant), multiplier_(multiplier) {}

  std::uint32_t operator()(std::uint32_t word) {
    word ^= constant_;
    constant_ *= multiplier_;
    word *= constant_;
    return word ^ (word >> 16);
  }

 private:
  std::uint32_t constant_;
  std::uint32_t multiplier_;
};

std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
  const std::uint32_t word = x * 0xca01f9ddU - y * 0x4973f715U;
  return word ^ (word >> 16);
}

std::array<std::uint32_t, kPoolSize> entropy_pool(std::uint64_t seed) {
  WordHash hash(0x43b0d7e5U, 0x931e8875U);
  std::array<std::uint32_t, kPoolSize> pool;
  for (std::size_t i = 0; i < kPoolSize; ++i) {
    pool[i] = hash(i < 2 ? static_cast<std::uint32_t>(seed >> (32 * i)) : 0U);
  }
  for (std::size_t from = 0; from < kPoolSize; ++from) {
    for (std::size_t to = 0; to < kPoolSize; ++to) {
      if (from != to) pool[to] = mix(pool[to], hash(pool[from]));
    }
  }
  return pool;
}

// Four 64-bit words of seed material.
std::array<std::uint64_t, 4> seed_words(std::uint64_t seed) {
  const auto pool = entropy_pool(seed);
  WordHash hash(0x8b51f9ddU, 0x58f38dedU);
  std::array<std::uint64_t, 4> words{};
  for (std::size_t i = 0; i < 2 * words.size(); ++i) {
    words[i / 2] |= std::uint64_t{hash(pool[i % kPoolSize])} << (32 * (i % 2));
  }
  return words;
}

}  // namespace

NumpyRandom::NumpyRandom(std::uint64_t seed) {
  const auto words = seed_words(seed);
  increment_ = (((U128{words[2]} << 64) | words[3]) << 1) | 1U;
  next();
  state_ += (U128{words[0]} << 64) | words[1];
  next();
}

std::uint64_t NumpyRandom::next() {
  constexpr U128 kMultiplier = (U128{2549297995355413924U} << 64) | 4865540595714422341U;
  state_ = state_ * kMultiplier + increment_;
  const auto folded = static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

std::uint64_t NumpyRandom::below(std::uint64_t bound) {
  if (bound == 1) return 0;
  const std::uint64_t biased = (std::numeric_limits<std::uint64_t>::max() - (bound - 1)) % bound;
  U128 product;
  do {
    product = U128{next()} * bound;
  } while (static_cast<std::uint64_t>(product) < biased);
  return static_cast<std::uint64_t>(product >> 64);
}

}  // namespace thalweg::checkpoint
