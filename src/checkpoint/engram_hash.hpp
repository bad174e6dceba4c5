// Constants of the Engram n-gram hash. Source: model specification, section 3.2.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/config.hpp"

namespace thalweg::checkpoint {

/// Constants of one Engram layer. Columns are ordered by n-gram order (2, 3, ...), then head.
struct EngramHash {
  int layer_id = 0;
  std::vector<std::int64_t> primes;  ///< [columns] modulus
  std::vector<std::int64_t>
      offsets;  ///< [columns] first row in the layer's table: the sum of the primes before
  std::vector<std::int64_t> multipliers;  ///< [max_ngram_size], one per look-back distance; odd
  std::int64_t rows = 0;                  ///< sum of the primes
};

/// Computes the constants of every Engram layer, in the order of `config.layer_ids`. Uses `layer_ids`,
/// `max_ngram_size`, `heads`, `bucket_count` and `compressed_vocab_size`, not `rows`.
std::vector<EngramHash> engram_hash(const EngramConfig& config);

}  // namespace thalweg::checkpoint
