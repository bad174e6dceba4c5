#include "checkpoint/engram_hash.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "checkpoint/numpy_random.hpp"

namespace thalweg::checkpoint {
namespace {

constexpr std::uint64_t kSeedPerLayer = 10007;

bool is_prime(std::int64_t n) {
  if (n < 4) return n >= 2;
  if (n % 2 == 0) return false;
  for (std::int64_t d = 3; d <= n / d; d += 2) {
    if (n % d == 0) return false;
  }
  return true;
}

std::vector<std::int64_t> multipliers(const EngramConfig& config, int layer_id) {
  const std::int64_t bound =
      std::max<std::int64_t>(1, std::numeric_limits<std::int64_t>::max() / config.compressed_vocab_size / 2);
  NumpyRandom random(kSeedPerLayer * static_cast<std::uint64_t>(layer_id));
  std::vector<std::int64_t> result(static_cast<std::size_t>(config.max_ngram_size));
  for (std::int64_t& m : result) {
    m = 2 * static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound))) + 1;
  }
  return result;
}

}  // namespace

std::vector<EngramHash> engram_hash(const EngramConfig& config) {
  std::vector<EngramHash> layers;
  const int columns = (config.max_ngram_size - 1) * config.heads;
  // Every (layer, order) searches from the same start for primes that none before it has taken, so together
  // they take the primes from there on, one after the other.
  std::int64_t prime = config.bucket_count - 1;
  for (const int layer_id : config.layer_ids) {
    EngramHash hash{
        .layer_id = layer_id, .primes = {}, .offsets = {}, .multipliers = multipliers(config, layer_id)};
    for (int c = 0; c < columns; ++c) {
      do {
        ++prime;
      } while (!is_prime(prime));
      hash.primes.push_back(prime);
      hash.offsets.push_back(hash.rows);
      hash.rows += prime;
    }
    layers.push_back(std::move(hash));
  }
  return layers;
}

}  // namespace thalweg::checkpoint
