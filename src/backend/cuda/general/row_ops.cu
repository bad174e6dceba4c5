#include "backend/cuda/general/row_ops.hpp"
#include "backend/cuda/general/values.cuh"

namespace thalweg::cuda::general {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ std::size_t item_of_thread() {
  return static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__global__ void embed_kernel(const std::uint16_t* table, const std::int32_t* tokens, std::size_t rows,
                             int width, int streams, float* h, float* pre) {
  const std::size_t item = item_of_thread();
  if (item >= rows * width) return;
  const std::size_t row = item / width;
  const auto d = static_cast<int>(item % width);
  const float value = bf16_value(table[static_cast<std::size_t>(tokens[row]) * width + d]);
  for (int s = 0; s < streams; ++s) h[(row * streams + s) * width + d] = value;
  if (d < streams && pre != nullptr) pre[row * streams + d] = d == 0 ? 1.0f : 0.0f;
}

__global__ void __launch_bounds__(kThreads) norm_kernel(float* rows, int width, const std::uint16_t* weight,
                                                        float eps) {
  float* x = rows + static_cast<std::size_t>(blockIdx.x) * width;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < width; i += kThreads) sum += x[i] * x[i];
  const float scale = 1.0f / sqrtf(block_sum(sum) / static_cast<float>(width) + eps);
  for (int i = threadIdx.x; i < width; i += kThreads) x[i] = bf16_value(weight[i]) * (x[i] * scale);
}

__global__ void rotations_kernel(const std::int64_t* positions, std::size_t count, const float* frequencies,
                                 int pairs, float2* out) {
  const std::size_t item = item_of_thread();
  if (item >= count * pairs) return;
  const float angle = static_cast<float>(positions[item / pairs]) * frequencies[item % pairs];
  const auto exact = static_cast<double>(angle);
  out[item] = make_float2(static_cast<float>(cos(exact)), static_cast<float>(sin(exact)));
}

__global__ void rotate_kernel(float* rows, std::size_t vectors, int per_row, int width,
                              const float2* rotations, int pairs, float sign) {
  const std::size_t item = item_of_thread();
  if (item >= vectors * pairs) return;
  const std::size_t vector = item / pairs;
  const auto pair = static_cast<int>(item % pairs);
  const float2 turn = rotations[vector / per_row * pairs + pair];
  const float s = sign * turn.y;
  float* x = rows + vector * width + (width - 2 * pairs) + 2 * pair;
  const float u = x[0];
  const float v = x[1];
  x[0] = u * turn.x - v * s;
  x[1] = u * s + v * turn.x;
}

__global__ void gather_kernel(const float* source, const std::int32_t* indices, std::size_t count,
                              std::size_t width, float* target) {
  const std::size_t item = item_of_thread();
  if (item >= count * width) return;
  target[item] = source[static_cast<std::size_t>(indices[item / width]) * width + item % width];
}

__global__ void mean_kernel(const float* h, std::size_t rows, int streams, std::size_t width, float* out,
                            std::size_t stride) {
  const std::size_t item = item_of_thread();
  if (item >= rows * width) return;
  const std::size_t row = item / width;
  const std::size_t d = item % width;
  float sum = 0.0f;
  for (int s = 0; s < streams; ++s) sum += h[(row * streams + s) * width + d];
  out[row * stride + d] = sum / static_cast<float>(streams);
}

__global__ void add_kernel(const float* source, std::size_t count, std::size_t width, float* target,
                           std::size_t stride) {
  const std::size_t item = item_of_thread();
  if (item >= count * width) return;
  target[item / width * stride + item % width] += source[item];
}

__global__ void collapse_kernel(const float* h, const float* pre, std::size_t rows, int streams,
                                std::size_t width, float* x) {
  const std::size_t item = item_of_thread();
  if (item >= rows * width) return;
  const std::size_t row = item / width;
  const std::size_t d = item % width;
  float sum = 0.0f;
  for (int s = 0; s < streams; ++s) sum += pre[row * streams + s] * h[(row * streams + s) * width + d];
  x[item] = sum;
}

__global__ void expand_kernel(const float* o, const float* post, const float* comb, std::size_t rows,
                              int streams, std::size_t width, float* h) {
  const std::size_t item = item_of_thread();
  if (item >= rows * width) return;
  const std::size_t row = item / width;
  const std::size_t d = item % width;
  float* stream = h + row * streams * width + d;
  float old[kMaxStreams];
  for (int i = 0; i < streams; ++i) old[i] = stream[i * width];
  for (int j = 0; j < streams; ++j) {
    float sum = post[row * streams + j] * o[item];
    for (int i = 0; i < streams; ++i) sum += comb[(row * streams + i) * streams + j] * old[i];
    stream[j * width] = sum;
  }
}

__device__ __forceinline__ float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

// Divides the entries of a line (a row or column of the combination) by their sum.
__device__ void divide_line(float* line, int streams, int step, float eps) {
  float sum = 0.0f;
  for (int i = 0; i < streams; ++i) sum += line[i * step];
  for (int i = 0; i < streams; ++i) line[i * step] /= sum + eps;
}

__device__ void softmax_line(const float* logits, int streams, float eps, float* out) {
  float largest = logits[0];
  for (int j = 1; j < streams; ++j) largest = fmaxf(largest, logits[j]);
  float sum = 0.0f;
  for (int j = 0; j < streams; ++j) sum += out[j] = expf(logits[j] - largest);
  for (int j = 0; j < streams; ++j) out[j] = out[j] / sum + eps;
}

// A block has a row: all threads the statistic, then thread i line i of the combination.
__global__ void __launch_bounds__(kThreads)
    mix_kernel(const __grid_constant__ MixRules rules, const float* h, int width, const float* products,
               const float* scale, const float* base, float* pre, float* post, float* comb) {
  __shared__ float logits[2 * kMaxStreams + kMaxStreams * kMaxStreams];
  __shared__ float c[kMaxStreams * kMaxStreams];
  const std::size_t row = blockIdx.x;
  const int streams = rules.streams;
  const int count = (2 + streams) * streams;
  const float* x = h + row * width;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < width; i += kThreads) sum += x[i] * x[i];
  const float norm = 1.0f / sqrtf(block_sum(sum) / static_cast<float>(width) + rules.norm_eps);
  for (int j = threadIdx.x; j < count; j += kThreads) {
    logits[j] = fmaf(products[row * count + j] * norm, scale[min(j / streams, 2)], base[j]);
  }
  __syncthreads();
  const int line = threadIdx.x;
  const bool mine = line < streams;
  if (mine) {
    pre[row * streams + line] = sigmoid(logits[line]) + rules.eps;
    post[row * streams + line] = 2.0f * sigmoid(logits[streams + line]);
    softmax_line(logits + (2 + line) * streams, streams, rules.eps, c + line * streams);
  }
  __syncthreads();
  if (mine) divide_line(c + line, streams, streams, rules.eps);
  for (int i = 1; i < rules.iterations; ++i) {
    __syncthreads();
    if (mine) divide_line(c + line * streams, streams, 1, rules.eps);
    __syncthreads();
    if (mine) divide_line(c + line, streams, streams, rules.eps);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < streams * streams; i += kThreads) comb[row * streams * streams + i] = c[i];
}

}  // namespace

void embed_rows(const Matrix& table, const std::int32_t* tokens, std::size_t rows, std::size_t streams,
                float* h, float* pre) {
  if (rows == 0) return;
  embed_kernel<<<blocks_for(rows * table.cols, kThreads), kThreads>>>(
      reinterpret_cast<const std::uint16_t*>(table.data), tokens, rows, table.cols, static_cast<int>(streams),
      h, pre);
  check(cudaGetLastError(), "embed");
}

void table_rows(const Matrix& table, const std::int32_t* tokens, std::size_t rows, float* out) {
  embed_rows(table, tokens, rows, 1, out, nullptr);
}

void norm_rows(const Rows& rows, const std::uint16_t* weight, float eps) {
  if (rows.rows() == 0) return;
  norm_kernel<<<static_cast<unsigned>(rows.rows()), kThreads>>>(rows.data(), static_cast<int>(rows.width()),
                                                                weight, eps);
  check(cudaGetLastError(), "norm");
}

void make_rotations(const std::int64_t* positions, std::size_t count, const float* frequencies, int pairs,
                    float2* out) {
  if (count == 0) return;
  rotations_kernel<<<blocks_for(count * pairs, kThreads), kThreads>>>(positions, count, frequencies, pairs,
                                                                      out);
  check(cudaGetLastError(), "rotations");
}

void rotate_rows(const Rows& rows, std::size_t width, const float2* rotations, int pairs, bool inverse) {
  if (rows.rows() == 0) return;
  const std::size_t per_row = rows.width() / width;
  const std::size_t vectors = rows.rows() * per_row;
  rotate_kernel<<<blocks_for(vectors * pairs, kThreads), kThreads>>>(
      rows.data(), vectors, static_cast<int>(per_row), static_cast<int>(width), rotations, pairs,
      inverse ? -1.0f : 1.0f);
  check(cudaGetLastError(), "rotate");
}

void gather_rows(const float* source, const std::int32_t* indices, std::size_t count, std::size_t width,
                 float* target) {
  if (count * width == 0) return;
  gather_kernel<<<blocks_for(count * width, kThreads), kThreads>>>(source, indices, count, width, target);
  check(cudaGetLastError(), "gather rows");
}

void mean_streams(const Rows& h, std::size_t streams, std::size_t offset, const Rows& out) {
  if (h.rows() == 0) return;
  const std::size_t width = h.width() / streams;
  mean_kernel<<<blocks_for(h.rows() * width, kThreads), kThreads>>>(
      h.data(), h.rows(), static_cast<int>(streams), width, out.data() + offset, out.width());
  check(cudaGetLastError(), "mean of streams");
}

void add_rows(const Rows& source, float* target, std::size_t target_stride) {
  if (source.size() == 0) return;
  add_kernel<<<blocks_for(source.size(), kThreads), kThreads>>>(source.data(), source.rows(), source.width(),
                                                                target, target_stride);
  check(cudaGetLastError(), "add rows");
}

void collapse_rows(const Rows& h, const Rows& pre, Rows& x) {
  const std::size_t streams = pre.width();
  const std::size_t width = h.width() / streams;
  x.resize(h.rows(), width);
  if (h.rows() == 0) return;
  collapse_kernel<<<blocks_for(x.size(), kThreads), kThreads>>>(
      h.data(), pre.data(), h.rows(), static_cast<int>(streams), width, x.data());
  check(cudaGetLastError(), "collapse");
}

void expand_rows(const Rows& o, const Rows& post, const Rows& comb, const Rows& h) {
  if (h.rows() == 0) return;
  expand_kernel<<<blocks_for(o.size(), kThreads), kThreads>>>(o.data(), post.data(), comb.data(), o.rows(),
                                                              static_cast<int>(post.width()), o.width(),
                                                              h.data());
  check(cudaGetLastError(), "expand");
}

void mix_rows(const MixRules& rules, const Rows& h, const Rows& products, const float* scale,
              const float* base, float* pre, float* post, float* comb) {
  if (h.rows() == 0) return;
  mix_kernel<<<static_cast<unsigned>(h.rows()), kThreads>>>(
      rules, h.data(), static_cast<int>(h.width()), products.data(), scale, base, pre, post, comb);
  check(cudaGetLastError(), "mix");
}

}  // namespace thalweg::cuda::general
