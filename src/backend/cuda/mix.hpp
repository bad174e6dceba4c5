// Hyper-connections of four residual streams (model specification, 3.3), fused with what lies around them:
// the last sublayer's expansion, this sublayer's collapse, RMSNorm and quantisation, and its own
// coefficients.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/device.hpp"
#include "backend/cuda/linear.hpp"

namespace thalweg::cuda {

constexpr int streams = 4;
constexpr int mix_outputs = 24;  ///< pre 4, post 4, combination 16

/// Coefficients of one sublayer, device memory.
struct MixCoefficients {
  float* pre = nullptr;   ///< [rows, 4]
  float* post = nullptr;  ///< [rows, 4]
  float* comb = nullptr;  ///< [rows, 4, 4], [old][new]
};

struct MixWeights {
  const float* fn = nullptr;     ///< [24, 4 * width]
  const float* base = nullptr;   ///< [24]
  const float* scale = nullptr;  ///< [3]
};

struct MixInput {
  std::uint16_t* h = nullptr;  ///< [rows, 4, width] bf16; expanded in place
  int rows = 0;
  int width = 0;  ///< a multiple of 160, at most 8192
  const std::uint16_t* output =
      nullptr;           ///< [rows, width] bf16: the last sublayer's; null: h is as it should be
  MixCoefficients last;  ///< of the last sublayer: post and comb expand, pre collapses
  MixWeights weights;    ///< of this sublayer
  const std::uint16_t* norm_weight = nullptr;
  float epsilon = 0;      ///< of both norms
  float mix_epsilon = 0;  ///< hc_eps
  int iterations = 0;     ///< of the Sinkhorn normalisation
};

/// Scratch memory for at most `max_rows` rows.
class MixWorkspace {
 public:
  MixWorkspace(int max_rows, int width);
  float* partial_sums() const { return partial_sums_.data(); }
  std::uint16_t* collapsed() const { return collapsed_.data(); }

 private:
  DeviceArray<float> partial_sums_;
  DeviceArray<std::uint16_t> collapsed_;
};

/// h <- expand(output, h, last); x = RMSNorm(collapse(h, last.pre)); out = Q_fp8_32(x), an operand; next =
/// this sublayer's coefficients, from the new h. `plain`, if not null, receives x unquantised as another
/// operand. Two launches. fp32 sums in a fixed order, by slices of 160 channels. Rows do not depend on each
/// other.
void mix_sublayer(const MixInput& input, const MixWorkspace& workspace, const MixCoefficients& next,
                  const OperandView& out, std::uint16_t* plain, cudaStream_t stream);

}  // namespace thalweg::cuda
