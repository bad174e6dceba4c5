// Looks for NaN codes in quantised tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/thread_pool.hpp"
#include "checkpoint/safetensors.hpp"

namespace thalweg::checkpoint {

/// A tensor of E4M3 codes or UE8M0 scales to look through; `where` names it in messages.
struct CodedTensor {
  std::string where;
  const StoredTensor* tensor;
};

/// Bytes looked through so far.
using CheckProgress = std::function<void(std::int64_t done)>;

/// Reads every byte of the tensors with the pool's threads. Throws InputError naming the first tensor, in the
/// order given, that holds a NaN (0x7F or 0xFF in E4M3, 255 in UE8M0), and the index of its element.
/// `progress` is called from the calling thread.
void check_codes(std::span<const CodedTensor> tensors, ThreadPool& pool, const CheckProgress& progress);

}  // namespace thalweg::checkpoint
