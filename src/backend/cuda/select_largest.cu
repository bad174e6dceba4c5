// Selection of the k largest of a row of bf16 scores, exact, lower index first among equals, in index order.
//
// Roofline: the scores once, 2 bytes each: 131072 scores are 57 ns of the device's HBM, but one block has a
// row to itself and reads about 60 bytes a ns. A sample of the row gives a threshold that about 2k scores
// pass; one pass over the row collects those, and the exact k-th largest is found among them. Where the
// sample misleads (too few or too many pass) the threshold comes from histograms of the whole row instead.
// The chosen ones become a bitmap, which gives both the order of the output and the first of equals.
#include <cuda_runtime.h>

#include "backend/cuda/device.hpp"
#include "backend/cuda/indexer.hpp"
#include "backend/cuda/select_rules.hpp"

namespace thalweg::cuda {
namespace {

constexpr int select_threads = 1024;
constexpr int bins = 2048;  // by the upper 11 bits of a key
constexpr int list_capacity = 8192;
constexpr int sample_chunks = 1024;  // of 8 scores

struct SelectShared {
  unsigned histogram[bins];
  unsigned list_keys[list_capacity / 2];  // 16-bit keys
  int list_indices[list_capacity];
  int warp_sums[32];
  int list_count;
  unsigned bin;
  int above;  // scores above the bin, or above the threshold
  unsigned threshold;
  unsigned bitmap[1];  // as many words as the row needs
};

struct SelectRow {
  const std::uint16_t* scores;
  int count;
  int forced;  // -1: none
  int k;

  // Order-preserving key: larger score, larger key; -0 equals +0.
  __device__ unsigned key(unsigned bits, int index) const {
    if (index == forced) return 0xFFFFu;
    if (bits == 0x8000u) bits = 0;
    return (bits & 0x8000u ? ~bits : bits | 0x8000u) & 0xFFFFu;
  }
};

// Calls use(key, index) for the scores of the chunks (of 8) that `first`, `first` + step, ... name.
template <class Use>
__device__ __forceinline__ void for_scores(const SelectRow& row, int chunk_stride, int chunk_count, Use use) {
  for (int i = threadIdx.x; i < chunk_count; i += select_threads) {
    const int base = i * chunk_stride * 8;
    const uint4 words = reinterpret_cast<const uint4*>(row.scores)[i * chunk_stride];
    const unsigned pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const int index = base + k;
      const unsigned bits = k % 2 == 0 ? pairs[k / 2] & 0xFFFFu : pairs[k / 2] >> 16;
      if (index < row.count) use(row.key(bits, index), index);
    }
  }
}

__device__ void clear_histogram(SelectShared& shared) {
  for (int i = threadIdx.x; i < bins; i += select_threads) shared.histogram[i] = 0;
  __syncthreads();
}

// Sum over the block of the values of threads before this one.
__device__ int prefix_sum(int value, SelectShared& shared) {
  const int lane = threadIdx.x % 32;
  int sum = value;
  for (int step = 1; step < 32; step *= 2) {
    const int left = __shfl_up_sync(0xFFFFFFFFu, sum, step);
    if (lane >= step) sum += left;
  }
  __syncthreads();
  if (lane == 31) shared.warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  int before = 0;
  for (int warp = 0; warp < static_cast<int>(threadIdx.x) / 32; ++warp) before += shared.warp_sums[warp];
  return before + sum - value;
}

// Finds the highest bin from which on at least `wanted` entries lie, and how many lie above it. With fewer
// entries in all: bin 0.
__device__ void find_bin(SelectShared& shared, int used_bins, int wanted) {
  // Thread t holds bins used - 1 - 2t and the one below: descending order.
  const int top = used_bins - 1 - 2 * static_cast<int>(threadIdx.x);
  const int first = top >= 0 ? static_cast<int>(shared.histogram[top]) : 0;
  const int second = top >= 1 ? static_cast<int>(shared.histogram[top - 1]) : 0;
  if (threadIdx.x == 0) {
    shared.bin = 0;
    shared.above = 0;
  }
  const int before = prefix_sum(first + second, shared);
  if (before < wanted && before + first >= wanted) {
    shared.bin = top;
    shared.above = before;
  } else if (before + first < wanted && before + first + second >= wanted) {
    shared.bin = top - 1;
    shared.above = before + first;
  }
  __syncthreads();
}

// Collects every score whose key is `from` or higher. False if they do not fit or are fewer than k.
__device__ bool collect(const SelectRow& row, unsigned from, SelectShared& shared) {
  if (threadIdx.x == 0) shared.list_count = 0;
  __syncthreads();
  auto* keys = reinterpret_cast<std::uint16_t*>(shared.list_keys);
  for_scores(row, 1, (row.count + 7) / 8, [&](unsigned key, int index) {
    if (key >= from) {
      const int at = atomicAdd(&shared.list_count, 1);
      if (at < list_capacity) {
        keys[at] = static_cast<std::uint16_t>(key);
        shared.list_indices[at] = index;
      }
    }
  });
  __syncthreads();
  return shared.list_count >= row.k && shared.list_count <= list_capacity;
}

// The k-th largest key, in shared.threshold, and how many are larger, in shared.above. `visit` calls its
// argument for every (key, index) that can matter.
template <class Visit>
__device__ void find_threshold(int k, SelectShared& shared, Visit visit) {
  clear_histogram(shared);
  visit([&](unsigned key, int) { atomicAdd(&shared.histogram[key >> 5], 1u); });
  __syncthreads();
  find_bin(shared, bins, k);
  const unsigned bin = shared.bin;
  const int above = shared.above;
  clear_histogram(shared);
  visit([&](unsigned key, int) {
    if (key >> 5 == bin) atomicAdd(&shared.histogram[key & 31], 1u);
  });
  __syncthreads();
  find_bin(shared, 32, k - above);
  if (threadIdx.x == 0) {
    shared.threshold = bin << 5 | shared.bin;
    shared.above += above;
  }
  __syncthreads();
}

// Leaves only the first `keep` bits of the bitmap.
__device__ void keep_first(SelectShared& shared, int words, int keep) {
  const int share = (words + select_threads - 1) / select_threads;
  const int begin = threadIdx.x * share;
  int count = 0;
  for (int i = begin; i < min(begin + share, words); ++i) count += __popc(shared.bitmap[i]);
  int before = prefix_sum(count, shared);
  for (int i = begin; i < min(begin + share, words); ++i) {
    unsigned word = shared.bitmap[i];
    const int bits = __popc(word);
    if (before + bits > keep) {
      for (int surplus = before + bits - max(before, keep); surplus > 0; --surplus)
        word &= ~(0x80000000u >> __clz(word));
      shared.bitmap[i] = word;
    }
    before += bits;
  }
  __syncthreads();
}

__device__ void write_bitmap(SelectShared& shared, int words, int* out) {
  const int share = (words + select_threads - 1) / select_threads;
  const int begin = threadIdx.x * share;
  int count = 0;
  for (int i = begin; i < min(begin + share, words); ++i) count += __popc(shared.bitmap[i]);
  int at = prefix_sum(count, shared);
  for (int i = begin; i < min(begin + share, words); ++i) {
    for (unsigned word = shared.bitmap[i]; word != 0; word &= word - 1) out[at++] = i * 32 + __ffs(word) - 1;
  }
}

template <class Visit>
__device__ void choose(const SelectRow& row, SelectShared& shared, int* out, Visit visit) {
  find_threshold(row.k, shared, visit);
  const unsigned threshold = shared.threshold;
  const int larger = shared.above;
  const int words = (row.count + 31) / 32;
  for (int i = threadIdx.x; i < words; i += select_threads) shared.bitmap[i] = 0;
  __syncthreads();
  visit([&](unsigned key, int index) {
    if (key == threshold) atomicOr(&shared.bitmap[index / 32], 1u << (index % 32));
  });
  __syncthreads();
  keep_first(shared, words, row.k - larger);
  visit([&](unsigned key, int index) {
    if (key > threshold) atomicOr(&shared.bitmap[index / 32], 1u << (index % 32));
  });
  __syncthreads();
  write_bitmap(shared, words, out);
}

__global__ void __launch_bounds__(select_threads)
    select_kernel(const std::uint16_t* scores, int stride, const int* counts, const int* forced, int k,
                  int* out, int* found) {
  extern __shared__ __align__(16) std::uint8_t shared_base[];
  SelectShared& shared = *reinterpret_cast<SelectShared*>(shared_base);
  const SelectRow row{scores + static_cast<std::size_t>(blockIdx.x) * stride, counts[blockIdx.x],
                      forced == nullptr ? -1 : forced[blockIdx.x], k};
  out += static_cast<std::size_t>(blockIdx.x) * k;
  if (found != nullptr && threadIdx.x == 0) found[blockIdx.x] = min(row.count, k);
  if (row.count <= k) {
    for (int i = threadIdx.x; i < k; i += select_threads) out[i] = i < row.count ? i : -1;
    return;
  }
  const int chunks = (row.count + 7) / 8;
  const int step = max(1, chunks / sample_chunks);
  find_threshold(sample_rank(k, step), shared,
                 [&](auto use) { for_scores(row, step, (chunks + step - 1) / step, use); });
  if (collect(row, shared.threshold, shared)) {
    const auto* keys = reinterpret_cast<const std::uint16_t*>(shared.list_keys);
    choose(row, shared, out, [&](auto use) {
      for (int i = threadIdx.x; i < shared.list_count; i += select_threads)
        use(keys[i], shared.list_indices[i]);
    });
  } else {
    choose(row, shared, out, [&](auto use) { for_scores(row, 1, chunks, use); });
  }
}

}  // namespace

void select_largest(const std::uint16_t* scores, int rows, int stride, const int* counts, const int* forced,
                    int k, int* out, int* found, cudaStream_t stream) {
  check_selection(stride, k);
  const std::size_t shared_bytes = sizeof(SelectShared) + static_cast<std::size_t>(stride + 31) / 32 * 4;
  static const cudaError_t prepared =
      cudaFuncSetAttribute(select_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(sizeof(SelectShared) + max_selection_scores / 8));
  check(prepared, "selection: shared memory");
  select_kernel<<<rows, select_threads, shared_bytes, stream>>>(scores, stride, counts, forced, k, out,
                                                                found);
  check(cudaGetLastError(), "selection");
}

}  // namespace thalweg::cuda
