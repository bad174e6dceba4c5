// Pages of global KV and state slots in device memory, and where the kernels find their records.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/general/cache_rows.hpp"
#include "backend/cuda/general/rows.hpp"
#include "model/cache_layout.hpp"

namespace thalweg::cuda::general {

/// Owns all cache memory of a backend.
class CacheMemory {
 public:
  CacheMemory(const checkpoint::ModelConfig& config, model::CacheFormats formats, int backtracking,
              std::size_t pages, std::size_t slots);

  const model::PageLayout& page_layout() const { return page_layout_; }
  const model::SlotLayout& slot_layout() const { return slot_layout_; }
  const model::CacheFormats& formats() const { return formats_; }
  std::uint8_t* page(std::int32_t page) const;
  std::uint8_t* slot(std::int32_t slot) const;

  WindowRings windows(int layer) const;
  RawRings raw(int layer) const;
  PageRows entries(int layer) const;
  PageRows index_keys(int layer) const;

 private:
  const model::PageSection& section(int layer) const;

  model::CacheFormats formats_;
  model::PageLayout page_layout_;
  model::SlotLayout slot_layout_;
  int head_width_;
  int index_width_;
  DeviceBytes pages_;
  DeviceBytes slots_;
};

}  // namespace thalweg::cuda::general
