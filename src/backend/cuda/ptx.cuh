// Each PTX instruction of the kernels, wrapped once. Shared-memory addresses are 32-bit (`shared_address`).
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace thalweg::cuda::ptx {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// True in one lane of a converged warp.
__device__ __forceinline__ bool elected() {
  std::uint32_t chosen;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xFFFFFFFF;\nselp.u32 %0, 1, 0, p;\n}\n" : "=r"(chosen));
  return chosen != 0;
}

// Barriers in shared memory (mbarrier). A wait names the parity of the phase it waits for.
__device__ __forceinline__ void barrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void barrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni ready;\n"
      "bra.uni again;\n"
      "ready:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
/// Barrier `id` (1..15) of `threads` threads of the block.
__device__ __forceinline__ void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Copies `bytes` (a multiple of 16) contiguous bytes from global to shared memory and counts them on
/// `barrier`. The bytes are read once: they are the first to leave the L2 cache.
__device__ __forceinline__ void bulk_load_once(std::uint32_t target, const void* source, std::uint32_t bytes,
                                               std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, "
      "[%3], %4;" ::"r"(target),
      "l"(source), "r"(bytes), "r"(barrier), "l"(0x12F0000000000000ull)
      : "memory");
}
/// As `bulk_load_once`, for bytes that other blocks read as well.
__device__ __forceinline__ void bulk_load(std::uint32_t target, const void* source, std::uint32_t bytes,
                                          std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(target),
      "l"(source), "r"(bytes), "r"(barrier)
      : "memory");
}
/// Makes ordinary shared-memory stores of this thread visible to the matrix unit and the copy engine.
__device__ __forceinline__ void async_proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Registers move between the warpgroups of a block.
template <int registers>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// Programmatic dependent launch: the next kernel of the stream may start while this one runs, and waits
// itself until what it depends on is done and visible.
__device__ __forceinline__ void let_next_kernel_start() {
  asm volatile("griddepcontrol.launch_dependents;");
}
__device__ __forceinline__ void wait_for_last_kernel() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Thread block clusters.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ std::uint32_t cluster_address(std::uint32_t shared, std::uint32_t rank) {
  std::uint32_t mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(shared), "r"(rank));
  return mapped;
}
__device__ __forceinline__ float cluster_load(std::uint32_t address) {
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ float4 cluster_load4(std::uint32_t address) {
  float4 value;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(address)
               : "memory");
  return value;
}

// Warpgroup matrix instructions: ordering. The products themselves are in wgmma.cuh.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int pending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/// Descriptor of a bf16 operand in shared memory, rows of 64 values (128 bytes, the 128-byte swizzle) in
/// atoms of 8, `atom_stride` bytes from one to the next. `address` is 1024-byte aligned, plus 32 bytes for
/// each 16 values along the row.
__device__ __forceinline__ std::uint64_t row_descriptor(std::uint32_t address, std::uint32_t atom_stride) {
  constexpr std::uint64_t swizzle128 = 1ull << 62;
  return swizzle128 | (static_cast<std::uint64_t>(atom_stride >> 4) << 32) | (1ull << 16) |
         ((address & 0x3FFFF) >> 4);
}

/// Descriptor of the same memory read the other way: the 64 values of a row are 64 columns of the operand,
/// and rows run along its sum. `slice_stride` bytes lie between one 64-column slice and the next; atoms of 8
/// rows follow each other.
__device__ __forceinline__ std::uint64_t column_descriptor(std::uint32_t address,
                                                           std::uint32_t slice_stride) {
  constexpr std::uint64_t swizzle128 = 1ull << 62;
  constexpr std::uint64_t atom_stride = 1024 >> 4;
  return swizzle128 | (atom_stride << 32) | (static_cast<std::uint64_t>(slice_stride >> 4) << 16) |
         ((address & 0x3FFFF) >> 4);
}

__device__ __forceinline__ std::uint32_t bf16x2_multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}
/// Two floats rounded to nearest even; `low` in the lower half.
__device__ __forceinline__ std::uint32_t bf16x2_round(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
__device__ __forceinline__ float bf16_low(std::uint32_t pair) {
  return __uint_as_float(pair << 16);
}
__device__ __forceinline__ float bf16_high(std::uint32_t pair) {
  return __uint_as_float(pair & 0xFFFF0000u);
}
__device__ __forceinline__ float round_to_bf16(float value) {
  return bf16_low(bf16x2_round(value, 0.0f));
}

}  // namespace thalweg::cuda::ptx
