// Expansion, collapse, norm, quantisation and mixing coefficients of a sublayer.
//
// Roofline: 4 streams read and written, the sublayer's output read, its collapsed input written twice and
// read once: 132 kB a row of 5120 (29 ns of the device's HBM), and 2 MB of fp32 mixing weights. The mixing
// product (24 x 20480 a row, fp32) would cost 2 MB of L2 reads a row alone; blocks of 16 rows share a slice
// of it, a slice being 160 channels of each stream, so that few rows still spread over 32 blocks. A second
// kernel adds the slices in order, finishes the coefficients in one warp (a 4 x 4 matrix in 16 lanes) and
// meanwhile norms and quantises the row.
#include "backend/cuda/mix.hpp"
#include "backend/cuda/quantise.cuh"

namespace thalweg::cuda {
namespace {

constexpr int slice_channels = 160;
constexpr int slice_columns = streams * slice_channels;
constexpr int block_rows = 32;
constexpr int mix_threads = 256;
constexpr int partials =
    32;  // of a row and slice: 24 products, sum of squares of h, of the collapsed row; padding

struct Eight {
  float v[8];

  __device__ static Eight load(const std::uint16_t* at) {
    const uint4 words = *reinterpret_cast<const uint4*>(at);
    const std::uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
    Eight out;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out.v[2 * i] = ptx::bf16_low(pairs[i]);
      out.v[2 * i + 1] = ptx::bf16_high(pairs[i]);
    }
    return out;
  }
  /// Rounds to bf16, in place and in memory.
  __device__ void store(std::uint16_t* at) {
    std::uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      pairs[i] = ptx::bf16x2_round(v[2 * i], v[2 * i + 1]);
      v[2 * i] = ptx::bf16_low(pairs[i]);
      v[2 * i + 1] = ptx::bf16_high(pairs[i]);
    }
    *reinterpret_cast<uint4*>(at) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
  __device__ float squares() const {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) sum = fmaf(v[i], v[i], sum);
    return sum;
  }
};

struct SliceShared {
  float weights[mix_outputs][slice_columns];
  std::uint16_t h[block_rows][slice_columns];
  float squares[block_rows][slice_channels / 8];
  float collapsed_squares[block_rows][slice_channels / 8];
  alignas(8) std::uint64_t weights_here;
};

// Starts copying the slice's mixing weights: 160 floats of each stream and output.
__device__ void load_weights(const MixInput& input, int slice, SliceShared& shared) {
  const std::uint32_t barrier = ptx::shared_address(&shared.weights_here);
  if (threadIdx.x == 0) {
    ptx::barrier_init(barrier, 1);
    ptx::barrier_init_fence();
    ptx::barrier_expect(barrier, sizeof(shared.weights));
  }
  __syncthreads();
  if (threadIdx.x < mix_outputs * streams) {
    const int output = threadIdx.x / streams;
    const int stream = threadIdx.x % streams;
    ptx::bulk_load(
        ptx::shared_address(&shared.weights[output][stream * slice_channels]),
        input.weights.fn + static_cast<std::size_t>(threadIdx.x) * input.width + slice * slice_channels,
        slice_channels * 4, barrier);
  }
}

// Eight channels of one row: all four streams, expanded, and their collapse.
__device__ void mix_channels(const MixInput& input, int row, int local_row, int slice, int chunk,
                             SliceShared& shared, std::uint16_t* collapsed) {
  const int channel = slice * slice_channels + chunk * 8;
  std::uint16_t* h = input.h + static_cast<std::size_t>(row) * streams * input.width + channel;
  Eight old[streams];
#pragma unroll
  for (int i = 0; i < streams; ++i) old[i] = Eight::load(h + i * input.width);
  if (input.output != nullptr) {
    const Eight output = Eight::load(input.output + static_cast<std::size_t>(row) * input.width + channel);
    Eight fresh[streams];
#pragma unroll
    for (int j = 0; j < streams; ++j) {
      const float post = input.last.post[row * streams + j];
#pragma unroll
      for (int k = 0; k < 8; ++k) fresh[j].v[k] = post * output.v[k];
#pragma unroll
      for (int i = 0; i < streams; ++i) {
        const float weight = input.last.comb[(row * streams + i) * streams + j];
#pragma unroll
        for (int k = 0; k < 8; ++k) fresh[j].v[k] += weight * old[i].v[k];
      }
    }
#pragma unroll
    for (int j = 0; j < streams; ++j) {
      old[j] = fresh[j];
      old[j].store(h + j * input.width);
    }
  }
  Eight sum = {};
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < streams; ++i) {
    const float weight = input.last.pre[row * streams + i];
#pragma unroll
    for (int k = 0; k < 8; ++k) sum.v[k] += weight * old[i].v[k];
    squares += old[i].squares();
    old[i].store(&shared.h[local_row][i * slice_channels + chunk * 8]);
  }
  sum.store(collapsed + static_cast<std::size_t>(row) * input.width + channel);
  shared.squares[local_row][chunk] = squares;
  shared.collapsed_squares[local_row][chunk] = sum.squares();
}

// A warp multiplies 8 rows by 12 of the 24 rows of the mixing weights; a lane has 2 columns in 64.
__device__ void mix_products(const MixInput& input, int first_row, int slice, const SliceShared& shared,
                             float* partial_sums, int slices) {
  constexpr int warp_rows = 8;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int rows = warp / 2 * warp_rows;
  const int outputs = warp % 2 * 12;
  if (first_row + rows >= input.rows) return;
  float sums[warp_rows][12] = {};
#pragma unroll 1
  for (int column = lane * 2; column < slice_columns; column += 64) {
    float2 values[warp_rows];
#pragma unroll
    for (int r = 0; r < warp_rows; ++r) {
      const std::uint32_t pair = *reinterpret_cast<const std::uint32_t*>(&shared.h[rows + r][column]);
      values[r] = make_float2(ptx::bf16_low(pair), ptx::bf16_high(pair));
    }
#pragma unroll
    for (int j = 0; j < 12; ++j) {
      const float2 weight = *reinterpret_cast<const float2*>(&shared.weights[outputs + j][column]);
#pragma unroll
      for (int r = 0; r < warp_rows; ++r) {
        sums[r][j] = fmaf(values[r].y, weight.y, fmaf(values[r].x, weight.x, sums[r][j]));
      }
    }
  }
#pragma unroll
  for (int r = 0; r < warp_rows; ++r) {
    float mine = 0.0f;
#pragma unroll
    for (int j = 0; j < 12; ++j) {
      float sum = sums[r][j];
#pragma unroll
      for (int bit = 16; bit > 0; bit /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, bit);
      if (lane == j) mine = sum;
    }
    const int row = first_row + rows + r;
    if (lane < 12 && row < input.rows) {
      partial_sums[(static_cast<std::size_t>(row) * slices + slice) * partials + outputs + lane] = mine;
    }
  }
}

__global__ void __launch_bounds__(mix_threads, 2)
    slice_kernel(const __grid_constant__ MixInput input, float* partial_sums, std::uint16_t* collapsed) {
  extern __shared__ __align__(16) std::uint8_t shared_base[];
  SliceShared& shared = *reinterpret_cast<SliceShared*>(shared_base);
  const int slice = blockIdx.x;
  const int slices = gridDim.x;
  const int first_row = blockIdx.y * block_rows;
  constexpr int chunks = slice_channels / 8;
  load_weights(input, slice, shared);
  for (int item = threadIdx.x; item < block_rows * chunks; item += mix_threads) {
    const int row = first_row + item / chunks;
    if (row < input.rows) mix_channels(input, row, item / chunks, slice, item % chunks, shared, collapsed);
  }
  __syncthreads();
  ptx::barrier_wait(ptx::shared_address(&shared.weights_here), 0);
  mix_products(input, first_row, slice, shared, partial_sums, slices);
  if (threadIdx.x < 2 * block_rows && first_row + static_cast<int>(threadIdx.x) / 2 < input.rows) {
    const int row = threadIdx.x / 2;
    const float* list = threadIdx.x % 2 == 0 ? shared.squares[row] : shared.collapsed_squares[row];
    float sum = 0.0f;
    for (int i = 0; i < chunks; ++i) sum += list[i];
    partial_sums[(static_cast<std::size_t>(first_row + row) * slices + slice) * partials + mix_outputs +
                 threadIdx.x % 2] = sum;
  }
}

__device__ __forceinline__ float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

__device__ __forceinline__ float sum_of_lanes(float value, int first_bit) {
  value += __shfl_xor_sync(0xFFFFFFFFu, value, first_bit);
  return value + __shfl_xor_sync(0xFFFFFFFFu, value, 2 * first_bit);
}

// Coefficients from the logits; lane j < 24 holds logit j. Lane 4 i + j of the first 16 then holds element
// (i, j).
__device__ void finish_coefficients(const MixInput& input, int row, float logit, int lane,
                                    const MixCoefficients& next) {
  if (lane < 4) next.pre[row * streams + lane] = sigmoid(logit) + input.mix_epsilon;
  if (lane >= 4 && lane < 8) next.post[row * streams + lane - 4] = 2.0f * sigmoid(logit);
  const float element = __shfl_sync(0xFFFFFFFFu, logit, 8 + lane % 16);
  float largest = fmaxf(element, __shfl_xor_sync(0xFFFFFFFFu, element, 1));
  largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 2));
  float c = expf(element - largest);
  c = c / sum_of_lanes(c, 1) + input.mix_epsilon;
  c = c / (sum_of_lanes(c, 4) + input.mix_epsilon);
  for (int i = 1; i < input.iterations; ++i) {
    c = __fdividef(c, sum_of_lanes(c, 1) + input.mix_epsilon);
    c = __fdividef(c, sum_of_lanes(c, 4) + input.mix_epsilon);
  }
  if (lane < 16) next.comb[row * 16 + lane] = c;
}

__global__ void __launch_bounds__(mix_threads)
    finish_kernel(const __grid_constant__ MixInput input, const float* partial_sums, int slices,
                  const std::uint16_t* collapsed, const __grid_constant__ MixCoefficients next,
                  std::uint16_t* out, std::uint16_t* plain, int atoms) {
  constexpr int warps = mix_threads / 32;
  __shared__ float totals[partials];
  __shared__ float parts[warps][partials];
  const int row = blockIdx.x;
  {
    // Warp w adds slices w, w + 8, ...; then the warps' sums are added in order.
    const float* at = partial_sums + static_cast<std::size_t>(row) * slices * partials + threadIdx.x % 32;
    float sum = 0.0f;
    if (threadIdx.x % 32 < mix_outputs + 2) {
#pragma unroll 8
      for (int slice = threadIdx.x / 32; slice < slices; slice += warps) sum += at[slice * partials];
    }
    parts[threadIdx.x / 32][threadIdx.x % 32] = sum;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    float sum = 0.0f;
    for (int warp = 0; warp < warps; ++warp) sum += parts[warp][threadIdx.x];
    totals[threadIdx.x] = sum;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    const int lane = threadIdx.x;
    const float norm =
        rsqrtf(totals[mix_outputs] / static_cast<float>(streams * input.width) + input.epsilon);
    float logit = 0.0f;
    if (lane < mix_outputs) {
      const int kind = min(lane / 4, 2);
      logit = fmaf(totals[lane] * norm, input.weights.scale[kind], input.weights.base[lane]);
    }
    finish_coefficients(input, row, logit, lane, next);
    return;
  }
  const float factor = rsqrtf(totals[mix_outputs + 1] / static_cast<float>(input.width) + input.epsilon);
  const int chunks = padded_columns(input.width) / 8;
  for (int first = 0; first < chunks; first += mix_threads - 32) {
    const int chunk = first + threadIdx.x - 32;
    Eight x = {};
    if (chunk * 8 < input.width) {
      x = Eight::load(collapsed + static_cast<std::size_t>(row) * input.width + chunk * 8);
      const Eight weight = Eight::load(input.norm_weight + chunk * 8);
#pragma unroll
      for (int k = 0; k < 8; ++k) x.v[k] = ptx::round_to_bf16(weight.v[k] * (x.v[k] * factor));
    }
    float largest = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) largest = fmaxf(largest, fabsf(x.v[k]));
    const std::uint32_t code = fp8_scale_code(largest_of_lanes(largest, 3));
    if (chunk >= chunks) continue;
    const std::size_t at = operand_index(row, chunk * 8, atoms);
    if (plain != nullptr) x.store(plain + at);
#pragma unroll
    for (int k = 0; k < 8; ++k) x.v[k] = round_to_fp8(x.v[k], code);
    x.store(out + at);
  }
}

}  // namespace

MixWorkspace::MixWorkspace(int max_rows, int width)
    : partial_sums_(static_cast<std::size_t>(max_rows) * (width / slice_channels) * partials),
      collapsed_(static_cast<std::size_t>(max_rows) * width) {}

void mix_sublayer(const MixInput& input, const MixWorkspace& workspace, const MixCoefficients& next,
                  const OperandView& out, std::uint16_t* plain, cudaStream_t stream) {
  static const cudaError_t prepared = cudaFuncSetAttribute(
      slice_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(sizeof(SliceShared)));
  check(prepared, "mix: shared memory");
  const int slices = input.width / slice_channels;
  const dim3 grid(slices, (input.rows + block_rows - 1) / block_rows);
  slice_kernel<<<grid, mix_threads, sizeof(SliceShared), stream>>>(input, workspace.partial_sums(),
                                                                   workspace.collapsed());
  finish_kernel<<<input.rows, mix_threads, 0, stream>>>(
      input, workspace.partial_sums(), slices, workspace.collapsed(), next, out.data, plain, out.atoms());
  check(cudaGetLastError(), "mix");
}

}  // namespace thalweg::cuda
