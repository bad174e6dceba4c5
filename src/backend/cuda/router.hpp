// The router: from gate logits to experts and weights (model specification, 3.7).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace thalweg::cuda {

struct RouterInput {
  const float* logits = nullptr;  ///< [rows, experts]
  int rows = 0;
  int experts = 0;                      ///< at most 512
  const float* bias = nullptr;          ///< [experts], added for the choice only
  const float* image_bias = nullptr;    ///< [experts]: the bias of image rows; null: there are none
  const std::uint8_t* image = nullptr;  ///< [rows] 1 for rows of an image span; null: none
  int chosen = 0;                       ///< experts a row, at most 32
  float scaling = 1;
};

/// s = sqrt(softplus(logit)); the `chosen` experts with the largest s + bias, best first, ties to the lower
/// id: ids [rows, chosen]; weights [rows, chosen] = s / (sum of the chosen s + 1e-20) * scaling. One warp a
/// row.
void route(const RouterInput& input, int* ids, float* weights, cudaStream_t stream);

}  // namespace thalweg::cuda
