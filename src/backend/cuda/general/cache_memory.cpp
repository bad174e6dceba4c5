#include "backend/cuda/general/cache_memory.hpp"

#include <algorithm>

namespace thalweg::cuda::general {

CacheMemory::CacheMemory(const checkpoint::ModelConfig& config, model::CacheFormats formats, int backtracking,
                         std::size_t pages, std::size_t slots)
    : formats_(formats),
      page_layout_(model::page_layout(config, model::kPageTokens, formats)),
      slot_layout_(model::slot_layout(config, backtracking, formats)),
      head_width_(config.head_dim),
      index_width_(config.index_head_dim),
      pages_(std::max<std::size_t>(1, pages * page_layout_.stride)),
      slots_(std::max<std::size_t>(1, slots * slot_layout_.stride)) {
  pages_.fill(0);
  slots_.fill(0);
}

std::uint8_t* CacheMemory::page(std::int32_t page) const {
  return static_cast<std::uint8_t*>(pages_.data()) + page * page_layout_.stride;
}

std::uint8_t* CacheMemory::slot(std::int32_t slot) const {
  return static_cast<std::uint8_t*>(slots_.data()) + slot * slot_layout_.stride;
}

const model::PageSection& CacheMemory::section(int layer) const {
  return *std::ranges::find(page_layout_.sections, layer, &model::PageSection::layer);
}

WindowRings CacheMemory::windows(int layer) const {
  return {slot(0) + slot_layout_.window_offsets[layer],
          static_cast<std::size_t>(slot_layout_.stride),
          slot_layout_.window_tokens,
          static_cast<int>(slot_layout_.window_row_bytes),
          static_cast<int>(numeric::code_bytes(formats_.window, head_width_)),
          head_width_,
          formats_.window};
}

RawRings CacheMemory::raw(int layer) const {
  const model::CompressorRing& ring =
      *std::ranges::find(slot_layout_.compressors, layer, &model::CompressorRing::layer);
  return {slot(0) + ring.offset, static_cast<std::size_t>(slot_layout_.stride),
          slot_layout_.compressor_tokens, static_cast<int>(ring.bytes / slot_layout_.compressor_tokens)};
}

PageRows CacheMemory::entries(int layer) const {
  const model::PageSection& part = section(layer);
  const std::size_t codes = numeric::code_bytes(formats_.compressed, head_width_);
  return {page(0) + part.main_offset,
          static_cast<std::size_t>(page_layout_.stride),
          part.rows,
          static_cast<int>(part.main_row_bytes),
          codes,
          static_cast<int>(part.main_row_bytes),
          head_width_,
          formats_.compressed};
}

PageRows CacheMemory::index_keys(int layer) const {
  const model::PageSection& part = section(layer);
  const std::size_t codes = numeric::code_bytes(formats_.index, index_width_);
  return {page(0) + part.index_offset,
          static_cast<std::size_t>(page_layout_.stride),
          part.rows,
          static_cast<int>(codes),
          part.rows * codes,
          static_cast<int>(numeric::scale_bytes(formats_.index, index_width_)),
          index_width_,
          formats_.index};
}

}  // namespace thalweg::cuda::general
