// Roofline: a row is read once and written in its small format; the launch costs more.
#include "backend/cuda/general/cache_rows.cuh"

namespace thalweg::cuda::general {
namespace {

constexpr int kThreads = 128;

// A warp has 32 consecutive values of a row.
__global__ void __launch_bounds__(kThreads)
    store_windows_kernel(const __grid_constant__ WindowRings rings, const StepRow* rows, const float* values) {
  const StepRow row = rows[blockIdx.x];
  if (static_cast<int>(blockIdx.x) - row.range_first < row.range_count - rings.tokens) return;
  const Record record = window_record(rings, row.slot, row.position);
  const float* x = values + static_cast<std::size_t>(blockIdx.x) * rings.width;
  for (int i = threadIdx.x; i < rings.width; i += kThreads) {
    store_in_warp(rings.format, x[i], i / 32 * 32, record.codes, record.scales);
  }
}

__global__ void __launch_bounds__(kThreads)
    store_entries_kernel(const __grid_constant__ PageRows pages, const Entry* entries,
                         const std::int32_t* blocks, const float* values) {
  const Entry entry = entries[blockIdx.x];
  const Record record = page_record(pages, blocks + entry.blocks, entry.index);
  const float* x = values + static_cast<std::size_t>(blockIdx.x) * pages.width;
  for (int i = threadIdx.x; i < pages.width; i += kThreads) {
    store_in_warp(pages.format, x[i], i / 32 * 32, record.codes, record.scales);
  }
}

}  // namespace

void store_windows(const WindowRings& rings, const StepRow* rows, const Rows& values) {
  if (values.rows() == 0) return;
  store_windows_kernel<<<static_cast<unsigned>(values.rows()), kThreads>>>(rings, rows, values.data());
  check(cudaGetLastError(), "store windows");
}

void store_entries(const PageRows& pages, const Entry* entries, const std::int32_t* blocks,
                   const Rows& values) {
  if (values.rows() == 0) return;
  store_entries_kernel<<<static_cast<unsigned>(values.rows()), kThreads>>>(pages, entries, blocks,
                                                                           values.data());
  check(cudaGetLastError(), "store entries");
}

}  // namespace thalweg::cuda::general
