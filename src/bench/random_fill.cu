#include "backend/cuda/device.hpp"
#include "backend/cuda/ptx.cuh"
#include "bench/random_fill.hpp"

namespace thalweg::bench {
namespace {

// A 64-bit mixing function of (seed, index).
__device__ std::uint32_t random_word(std::uint32_t seed, std::size_t index) {
  std::uint64_t x = (static_cast<std::uint64_t>(seed) << 40) ^ (index + 0x9E3779B97F4A7C15ull);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return static_cast<std::uint32_t>(x >> 32);
}

__device__ float unit(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

template <class Value, class Make>
__global__ void fill_kernel(Value* target, std::size_t count, std::uint32_t seed, Make make) {
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += static_cast<std::size_t>(gridDim.x) * blockDim.x) {
    target[i] = make(random_word(seed, i));
  }
}

template <class Value, class Make>
void fill(Value* target, std::size_t count, std::uint32_t seed, Make make) {
  fill_kernel<<<1024, 256>>>(target, count, seed, make);
  cuda::check(cudaGetLastError(), "fill with random data");
}

struct ByteRange {
  int low;
  int span;
  bool e4m3;
  __device__ std::uint8_t operator()(std::uint32_t word) const {
    const int byte = low + static_cast<int>(word % span);
    return static_cast<std::uint8_t>(e4m3 && (byte & 127) == 127 ? 0 : byte);
  }
};

struct Bf16Range {
  float size;
  __device__ std::uint16_t operator()(std::uint32_t word) const {
    return static_cast<std::uint16_t>(cuda::ptx::bf16x2_round((2.0f * unit(word) - 1.0f) * size, 0.0f));
  }
};

struct FloatRange {
  float low;
  float high;
  __device__ float operator()(std::uint32_t word) const { return low + (high - low) * unit(word); }
};

}  // namespace

void fill_bytes(void* target, std::size_t count, int low, int high, bool e4m3, std::uint32_t seed) {
  fill(static_cast<std::uint8_t*>(target), count, seed, ByteRange{low, high - low + 1, e4m3});
}

void fill_bf16(std::uint16_t* target, std::size_t count, float size, std::uint32_t seed) {
  fill(target, count, seed, Bf16Range{size});
}

void fill_float(float* target, std::size_t count, float low, float high, std::uint32_t seed) {
  fill(target, count, seed, FloatRange{low, high});
}

}  // namespace thalweg::bench
