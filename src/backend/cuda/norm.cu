// RMSNorm and Q_fp8_32, one block a row. Roofline: 2 bytes read and 2 written a value; the row stays in
// registers.
#include "backend/cuda/device.hpp"
#include "backend/cuda/norm.hpp"
#include "backend/cuda/quantise.cuh"

namespace thalweg::cuda {
namespace {

constexpr int norm_threads = 256;
constexpr int max_chunks = 4;  // of 8 values a thread

__device__ float block_sum(float value, float* shared) {
  for (int bit = 16; bit > 0; bit /= 2) value += __shfl_xor_sync(0xFFFFFFFFu, value, bit);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < norm_threads / 32; ++warp) sum += shared[warp];
  return sum;
}

template <bool normed, bool quantised>
__global__ void __launch_bounds__(norm_threads)
    norm_kernel(const std::uint16_t* rows, int stride, const std::uint16_t* weight, float epsilon,
                int columns, int atoms, std::uint16_t* out) {
  __shared__ float sums[norm_threads / 32];
  const int row = blockIdx.x;
  const int chunks = padded_columns(columns) / 8;
  uint4 words[max_chunks];
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < max_chunks; ++i) {
    const int chunk = i * norm_threads + threadIdx.x;
    words[i] = make_uint4(0, 0, 0, 0);
    if (chunk * 8 < columns) {
      words[i] = reinterpret_cast<const uint4*>(rows + static_cast<std::size_t>(row) * stride)[chunk];
    }
    if constexpr (normed) {
      const std::uint32_t pairs[4] = {words[i].x, words[i].y, words[i].z, words[i].w};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        squares = fmaf(ptx::bf16_low(pairs[k]), ptx::bf16_low(pairs[k]), squares);
        squares = fmaf(ptx::bf16_high(pairs[k]), ptx::bf16_high(pairs[k]), squares);
      }
    }
  }
  float factor = 1.0f;
  if constexpr (normed) factor = rsqrtf(block_sum(squares, sums) / static_cast<float>(columns) + epsilon);
#pragma unroll
  for (int i = 0; i < max_chunks; ++i) {
    const int chunk = i * norm_threads + threadIdx.x;
    if (i * norm_threads + static_cast<int>(threadIdx.x) / 32 * 32 >= chunks)
      break;  // whole warps: shuffles below
    float values[8];
    const std::uint32_t pairs[4] = {words[i].x, words[i].y, words[i].z, words[i].w};
    float largest = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      values[k] = k % 2 == 0 ? ptx::bf16_low(pairs[k / 2]) : ptx::bf16_high(pairs[k / 2]);
      if constexpr (normed) {
        const int column = chunk * 8 + k;
        const float scale = column < columns ? ptx::bf16_low(weight[column]) : 0.0f;
        values[k] = ptx::round_to_bf16(scale * (values[k] * factor));
      }
      largest = fmaxf(largest, fabsf(values[k]));
    }
    if constexpr (quantised) {
      const std::uint32_t code = fp8_scale_code(largest_of_lanes(largest, 3));
#pragma unroll
      for (int k = 0; k < 8; ++k) values[k] = round_to_fp8(values[k], code);
    }
    if (chunk < chunks) {
      *reinterpret_cast<uint4*>(out + operand_index(row, chunk * 8, atoms)) =
          make_uint4(ptx::bf16x2_round(values[0], values[1]), ptx::bf16x2_round(values[2], values[3]),
                     ptx::bf16x2_round(values[4], values[5]), ptx::bf16x2_round(values[6], values[7]));
    }
  }
}

template <bool normed, bool quantised>
void launch(const std::uint16_t* rows, int stride, const std::uint16_t* weight, float epsilon,
            const OperandView& out, cudaStream_t stream) {
  norm_kernel<normed, quantised><<<out.rows, norm_threads, 0, stream>>>(rows, stride, weight, epsilon,
                                                                        out.columns, out.atoms(), out.data);
  check(cudaGetLastError(), "norm rows");
}

}  // namespace

void quantise_rows(const std::uint16_t* rows, int stride, const OperandView& out, cudaStream_t stream) {
  launch<false, true>(rows, stride, nullptr, 0.0f, out, stream);
}

void norm_quantise_rows(const std::uint16_t* rows, int stride, const std::uint16_t* weight, float epsilon,
                        const OperandView& out, cudaStream_t stream) {
  launch<true, true>(rows, stride, weight, epsilon, out, stream);
}

void norm_rows(const std::uint16_t* rows, int stride, const std::uint16_t* weight, float epsilon,
               const OperandView& out, cudaStream_t stream) {
  launch<true, false>(rows, stride, weight, epsilon, out, stream);
}

}  // namespace thalweg::cuda
