// Roofline: one FP8 product a row; the copy of the gathered rows, 24 kB a row, is the rest.
#include "backend/cuda/general/kernels.hpp"
#include "backend/cuda/general/values.cuh"

namespace thalweg::cuda::general {
namespace {

constexpr int kThreads = 256;

// h_i += g_i v, with a gate from the agreement of the stream with its key. A block has a row and a stream.
__global__ void __launch_bounds__(kThreads)
    update_kernel(const float* kv, const std::uint16_t* q_weight, const std::uint16_t* k_weight,
                  const std::uint8_t* image, int streams, int width, float eps, float* h) {
  const std::size_t row = blockIdx.x;
  if (image[row] != 0) return;
  const int s = blockIdx.y;
  float* stream = h + (row * streams + s) * width;
  const float* key = kv + row * (streams + 1) * width + static_cast<std::size_t>(s) * width;
  const float* value = kv + row * (streams + 1) * width + static_cast<std::size_t>(streams) * width;
  float dot = 0.0f;
  float squares = 0.0f;
  float key_squares = 0.0f;
  for (int d = threadIdx.x; d < width; d += kThreads) {
    const float weight = bf16_value(q_weight[s * width + d]) * bf16_value(k_weight[s * width + d]);
    dot += stream[d] * weight * key[d];
    squares += stream[d] * stream[d];
    key_squares += key[d] * key[d];
  }
  dot = block_sum(dot);
  squares = block_sum(squares);
  key_squares = block_sum(key_squares);
  const auto n = static_cast<float>(width);
  dot /= sqrtf(squares / n + eps);
  dot /= sqrtf(key_squares / n + eps);
  dot /= sqrtf(n);
  const float gate = 1.0f / (1.0f + expf(-copysignf(sqrtf(fmaxf(fabsf(dot), 1e-6f)), dot)));
  for (int d = threadIdx.x; d < width; d += kThreads) stream[d] = stream[d] + gate * value[d];
}

}  // namespace

void update_streams(const EngramUpdate& update, const Rows& kv, const std::uint8_t* image, const Rows& h) {
  if (h.rows() == 0) return;
  const int width = update.q_weight.cols;
  update_kernel<<<dim3(static_cast<unsigned>(h.rows()), static_cast<unsigned>(update.q_weight.rows)),
                  kThreads>>>(
      kv.data(), reinterpret_cast<const std::uint16_t*>(update.q_weight.data),
      reinterpret_cast<const std::uint16_t*>(update.k_weight.data), image, update.q_weight.rows, width,
      update.eps, h.data());
  check(cudaGetLastError(), "engram");
}

}  // namespace thalweg::cuda::general
