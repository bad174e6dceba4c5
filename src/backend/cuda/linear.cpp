#include "backend/cuda/linear.hpp"

#include "base/error.hpp"

namespace thalweg::cuda {

int column_parts(const PackedShape& shape) {
  // Of the device that the choice is made for (H200); others keep the same sums. A cluster's blocks must fit
  // one group of multiprocessors, so the larger ones do not fill the device.
  constexpr int multiprocessors = 132;
  constexpr int clusters[] = {0, 132, 66, 39, 30, 22, 17, 15, 15};
  constexpr int reduction_cost = 3;  // in units of 128 rows x 128 columns
  const int jobs = (shape.row_tiles() + 1) / 2;
  const int pairs = shape.column_blocks() / 2;
  int best = 1;
  int best_cost = 0;
  for (int parts = 1; parts <= 8 && parts <= pairs; ++parts) {
    if (parts > 1 && jobs > clusters[parts]) break;  // all parts run at the same time, an SM each
    const int rounds = (jobs * parts + multiprocessors - 1) / multiprocessors;
    const int cost = rounds * ((pairs + parts - 1) / parts) + (parts > 1 ? reduction_cost : 0);
    if (parts == 1 || cost < best_cost) {
      best = parts;
      best_cost = cost;
    }
  }
  return best;
}

void check_groups(const LinearWeights& weights) {
  if (weights.groups > 1 && weights.shape.row_tiles() / weights.groups % 4 != 0) {
    throw UsageError("CUDA: a grouped projection needs a multiple of 256 rows a group");
  }
}

}  // namespace thalweg::cuda
