// Row norms and activation quantisation: from row-major bf16 to the operand of the next product.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "backend/cuda/linear.hpp"

namespace thalweg::cuda {

/// Q_fp8_32 of row-major bf16 rows [out.rows, out.columns]; `stride` values from row to row.
void quantise_rows(const std::uint16_t* rows, int stride, const OperandView& out, cudaStream_t stream);

/// Q_fp8_32(RMSNorm(row; weight)); both fused. Columns a multiple of 32, at most 8192.
void norm_quantise_rows(const std::uint16_t* rows, int stride, const std::uint16_t* weight, float epsilon,
                        const OperandView& out, cudaStream_t stream);

/// As `norm_quantise_rows` without the quantiser: the norm's bf16 as an operand.
void norm_rows(const std::uint16_t* rows, int stride, const std::uint16_t* weight, float epsilon,
               const OperandView& out, cudaStream_t stream);

}  // namespace thalweg::cuda
