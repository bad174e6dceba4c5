#include "model/engram.hpp"

namespace thalweg::model {

void engram_rows(const checkpoint::EngramHash& hash, std::int64_t pad, std::span<const std::int32_t> recent,
                 std::span<std::int64_t> rows) {
  const std::size_t orders = hash.multipliers.size() - 1;
  const std::size_t heads = hash.primes.size() / orders;
  bool blocked = false;
  std::int64_t mixed = 0;
  for (std::size_t back = 0; back < hash.multipliers.size(); ++back) {
    blocked = blocked || recent[back] < 0;
    mixed ^= (blocked ? pad : recent[back]) * hash.multipliers[back];
    if (back == 0) continue;
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t column = (back - 1) * heads + head;
      rows[column] = mixed % hash.primes[column] + hash.offsets[column];
    }
  }
}

}  // namespace thalweg::model
