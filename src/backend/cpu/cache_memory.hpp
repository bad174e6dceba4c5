// Pages of global KV and state slots in host memory, and the addresses of records in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/cache_layout.hpp"

namespace thalweg::backend::cpu {

/// Owns all cache memory of a backend. Not synchronised: the backend's step and the copies around it take
/// turns.
class CacheMemory {
 public:
  CacheMemory(const checkpoint::ModelConfig& config, model::CacheFormats formats, int backtracking,
              std::size_t pages, std::size_t slots);

  const model::PageLayout& page_layout() const { return page_layout_; }
  const model::SlotLayout& slot_layout() const { return slot_layout_; }
  const model::CacheFormats& formats() const { return formats_; }
  /// The section of a KV-source layer.
  const model::PageSection& section(int layer) const {
    return page_layout_.sections[section_of_layer_[layer]];
  }
  std::size_t pages() const { return pages_; }
  std::size_t slots() const { return slots_; }
  std::span<std::uint8_t> page(std::int32_t page) const {
    return {page_memory_.get() + page * page_layout_.stride, static_cast<std::size_t>(page_layout_.stride)};
  }
  std::span<std::uint8_t> slot(std::int32_t slot) const {
    return {slot_memory_.get() + slot * slot_layout_.stride, static_cast<std::size_t>(slot_layout_.stride)};
  }

  /// Window record of a position in the ring of a layer.
  std::uint8_t* window(std::int32_t slot_id, int layer, std::int64_t position) {
    return slot(slot_id).data() + slot_layout_.window_offsets[layer] +
           position % slot_layout_.window_tokens * slot_layout_.window_row_bytes;
  }
  /// Compressor record of a position: [score | latent], head_dim floats each.
  float* raw(std::int32_t slot_id, int layer, std::int64_t position) {
    const model::CompressorRing& ring = slot_layout_.compressors[compressor_of_layer_[layer]];
    const std::int64_t row = ring.bytes / slot_layout_.compressor_tokens;
    return reinterpret_cast<float*>(slot(slot_id).data() + ring.offset +
                                    position % slot_layout_.compressor_tokens * row);
  }

  void load_window(const std::uint8_t* record, std::span<float> values) const;
  void store_window(std::uint8_t* record, std::span<const float> values) const;
  /// Compressed KV entry `entry` of a sequence whose block table is `blocks`.
  void load_entry(const model::PageSection& section, const std::int32_t* blocks, std::int64_t entry,
                  std::span<float> values);
  void store_entry(const model::PageSection& section, const std::int32_t* blocks, std::int64_t entry,
                   std::span<const float> values);
  /// Index key of an entry.
  void load_index(const model::PageSection& section, const std::int32_t* blocks, std::int64_t entry,
                  std::span<float> values);
  void store_index(const model::PageSection& section, const std::int32_t* blocks, std::int64_t entry,
                   std::span<const float> values);

 private:
  std::uint8_t* entry_page(const model::PageSection& section, const std::int32_t* blocks,
                           std::int64_t entry) {
    return page(blocks[entry / section.rows]).data();
  }

  struct Free {
    void operator()(std::uint8_t* memory) const;
  };
  using Memory = std::unique_ptr<std::uint8_t[], Free>;
  static Memory allocate(std::size_t bytes);

  model::CacheFormats formats_;
  model::PageLayout page_layout_;
  model::SlotLayout slot_layout_;
  std::vector<std::size_t> section_of_layer_;     // by layer; only KV sources are asked for
  std::vector<std::size_t> compressor_of_layer_;  // by layer; only ratio-2 KV sources
  std::int64_t window_codes_;                     // bytes of the codes of a window record
  std::int64_t entry_codes_;
  std::int64_t index_codes_;
  std::int64_t index_scales_;
  std::size_t pages_;
  std::size_t slots_;
  Memory page_memory_;
  Memory slot_memory_;
};

}  // namespace thalweg::backend::cpu
