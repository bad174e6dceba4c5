#include "backend/cuda/select_rules.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace thalweg::cuda {

void check_selection(int stride, int k) {
  if (stride > max_selection_scores || stride % 8 != 0 || k < 1 || k > max_selection) {
    throw UsageError(
        fmt::format("CUDA: a selection of {} out of rows of {} scores: at most {} out of {}, in rows of a "
                    "multiple of 8",
                    k, stride, max_selection, max_selection_scores));
  }
}

}  // namespace thalweg::cuda
