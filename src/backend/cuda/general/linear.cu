// Roofline: with few rows the weights are read once, coalesced; with many rows the float32 units bound it, far
// below the tensor cores, which the kernels of the folder above use.
#include "backend/cuda/general/linear.hpp"
#include "backend/cuda/general/values.cuh"

namespace thalweg::cuda::general {
namespace {

constexpr int warps = 4;
constexpr int warp_outputs = 4;
constexpr int block_outputs = warps * warp_outputs;

template <Matrix::Kind kind>
__device__ __forceinline__ float weight_value(const Matrix& w, int n, int k) {
  const std::size_t at = static_cast<std::size_t>(n) * w.cols + k;
  if constexpr (kind == Matrix::Kind::f32) return reinterpret_cast<const float*>(w.data)[at];
  if constexpr (kind == Matrix::Kind::bf16)
    return bf16_value(reinterpret_cast<const std::uint16_t*>(w.data)[at]);
  if constexpr (kind == Matrix::Kind::fp8) {
    return e4m3_value(w.data[at]) * e8m0_value(w.scales[n / 32 * ((w.cols + 31) / 32) + k / 32]);
  }
  return e2m1_value(w.data[at / 2] >> (at % 2 * 4) & 15) *
         e8m0_value(w.scales[static_cast<std::size_t>(n) * (w.cols / 32) + k / 32]);
}

// Four consecutive columns; `k` is a multiple of 4 and so is the number of columns.
template <Matrix::Kind kind>
__device__ __forceinline__ void weight_values(const Matrix& w, int n, int k, float (&out)[4]) {
  const std::size_t at = static_cast<std::size_t>(n) * w.cols + k;
  if constexpr (kind == Matrix::Kind::f32) {
    const float4 v = *reinterpret_cast<const float4*>(w.data + at * 4);
    out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
  } else if constexpr (kind == Matrix::Kind::bf16) {
    const uint2 v = *reinterpret_cast<const uint2*>(w.data + at * 2);
    out[0] = __uint_as_float(v.x << 16), out[1] = __uint_as_float(v.x & 0xFFFF0000u);
    out[2] = __uint_as_float(v.y << 16), out[3] = __uint_as_float(v.y & 0xFFFF0000u);
  } else if constexpr (kind == Matrix::Kind::fp8) {
    const std::uint32_t v = *reinterpret_cast<const std::uint32_t*>(w.data + at);
    const float scale = e8m0_value(w.scales[n / 32 * ((w.cols + 31) / 32) + k / 32]);
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = e4m3_value(v >> (8 * i) & 0xFF) * scale;
  } else {
    const std::uint32_t v = *reinterpret_cast<const std::uint16_t*>(w.data + at / 2);
    const float scale = e8m0_value(w.scales[static_cast<std::size_t>(n) * (w.cols / 32) + k / 32]);
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = e2m1_value(v >> (4 * i) & 15) * scale;
  }
}

// `count` rows at `x` (at most kRows) times outputs first .. first + warp_outputs - 1, by one warp.
template <Matrix::Kind kind, int kRows>
__device__ __forceinline__ void multiply_tile(const Matrix& w, int first, const float* const (&x)[kRows],
                                              int count, float* y, std::size_t y_stride) {
  const int lane = threadIdx.x % 32;
  float sums[warp_outputs][kRows] = {};
  const bool vectors = w.cols % 4 == 0;
  for (int k = 4 * lane; k < w.cols; k += 128) {
    float weights[warp_outputs][4];
#pragma unroll
    for (int o = 0; o < warp_outputs; ++o) {
      const int n = min(first + o, w.rows - 1);
      if (vectors) {
        weight_values<kind>(w, n, k, weights[o]);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) weights[o][i] = k + i < w.cols ? weight_value<kind>(w, n, k + i) : 0.0f;
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float values[4];
      if (vectors) {
        const float4 v = *reinterpret_cast<const float4*>(x[r] + k);
        values[0] = v.x, values[1] = v.y, values[2] = v.z, values[3] = v.w;
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) values[i] = k + i < w.cols ? x[r][k + i] : 0.0f;
      }
#pragma unroll
      for (int o = 0; o < warp_outputs; ++o) {
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[o][r] = fmaf(values[i], weights[o][i], sums[o][r]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int o = 0; o < warp_outputs; ++o) {
      const float sum = warp_sum(sums[o][r]);
      if (lane == 0 && r < count && first + o < w.rows) y[r * y_stride + first + o] = sum;
    }
  }
}

template <Matrix::Kind kind, int kRows>
__global__ void __launch_bounds__(32 * warps) product_kernel(const __grid_constant__ Product p) {
  const int first = blockIdx.y * block_outputs + threadIdx.x / 32 * warp_outputs;
  if (first >= p.weight.rows) return;
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * kRows;
  const std::size_t left = p.rows - row;
  const int count = left < kRows ? static_cast<int>(left) : kRows;
  const float* x[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) x[r] = p.x + (row + min(r, count - 1)) * p.x_stride;
  multiply_tile<kind, kRows>(p.weight, first, x, count, p.y + row * p.y_stride, p.y_stride);
}

template <int kRows>
__global__ void __launch_bounds__(32 * warps) expert_kernel(const __grid_constant__ ExpertProduct p) {
  const int expert = blockIdx.y;
  const Matrix w = p.weights[expert * 3 + p.which];
  const int first = blockIdx.x * block_outputs + threadIdx.x / 32 * warp_outputs;
  if (first >= w.rows) return;
  const int end = p.starts[expert + 1];
  for (int place = p.starts[expert]; place < end; place += kRows) {
    const int count = min(kRows, end - place);
    const float* x[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int at = place + min(r, count - 1);
      x[r] = p.x + static_cast<std::size_t>(p.sources != nullptr ? p.sources[at] : at) * w.cols;
    }
    multiply_tile<Matrix::Kind::fp4, kRows>(w, first, x, count, p.y + static_cast<std::size_t>(place) * w.rows,
                                            w.rows);
  }
}

template <Matrix::Kind kind>
void launch(const Product& p) {
  const unsigned tiles = blocks_for(p.weight.rows, block_outputs);
  if (p.rows == 1) {
    product_kernel<kind, 1><<<dim3(1, tiles), 32 * warps>>>(p);
  } else {
    product_kernel<kind, 8><<<dim3(blocks_for(p.rows, 8), tiles), 32 * warps>>>(p);
  }
  check(cudaGetLastError(), "product");
}

// A warp has 32 consecutive values of a row, fewer at its end.
__global__ void round_kernel(RowFormat format, const float* source, std::size_t rows, int width,
                             float* target) {
  const int groups = (width + 31) / 32;
  const std::size_t item = (static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (item >= rows * groups) return;
  const int column = static_cast<int>(item % groups) * 32 + static_cast<int>(threadIdx.x % 32);
  const std::size_t at = item / groups * width + column;
  const float value = column < width ? source[at] : 0.0f;
  const float rounded = round_in_warp(format, value).value;
  if (column < width) target[at] = rounded;
}

}  // namespace

void multiply(const Product& p) {
  if (p.rows == 0 || p.weight.rows == 0) return;
  switch (p.weight.kind) {
    case Matrix::Kind::f32:
      return launch<Matrix::Kind::f32>(p);
    case Matrix::Kind::bf16:
      return launch<Matrix::Kind::bf16>(p);
    case Matrix::Kind::fp8:
      return launch<Matrix::Kind::fp8>(p);
    case Matrix::Kind::fp4:
      return launch<Matrix::Kind::fp4>(p);
  }
}

void multiply(const Matrix& weight, const Rows& x, Rows& y) {
  y.resize(x.rows(), weight.rows);
  multiply(Product{weight, x.data(), x.width(), x.rows(), y.data(), y.width()});
}

void multiply(const ExpertProduct& p) {
  expert_kernel<4><<<dim3(blocks_for(p.shape.rows, block_outputs), p.experts), 32 * warps>>>(p);
  check(cudaGetLastError(), "expert product");
}

void round_rows(RowFormat format, const float* source, std::size_t rows, std::size_t width, float* target) {
  const std::size_t groups = rows * ((width + 31) / 32);
  if (groups == 0) return;
  round_kernel<<<blocks_for(groups, 4), 128>>>(format, source, rows, static_cast<int>(width), target);
  check(cudaGetLastError(), "round rows");
}

}  // namespace thalweg::cuda::general
