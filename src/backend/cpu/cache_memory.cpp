#include "backend/cpu/cache_memory.hpp"

#include <cstdlib>
#include <new>

namespace thalweg::backend::cpu {

using numeric::pack_row;
using numeric::unpack_row;

void CacheMemory::Free::operator()(std::uint8_t* memory) const {
  std::free(memory);
}

// Zeroed memory that the system hands out page by page when it is first touched.
CacheMemory::Memory CacheMemory::allocate(std::size_t bytes) {
  auto* memory = static_cast<std::uint8_t*>(std::calloc(bytes == 0 ? 1 : bytes, 1));
  if (memory == nullptr) throw std::bad_alloc();
  return Memory(memory);
}

CacheMemory::CacheMemory(const checkpoint::ModelConfig& config, model::CacheFormats formats, int backtracking,
                         std::size_t pages, std::size_t slots)
    : formats_(formats),
      page_layout_(model::page_layout(config, model::kPageTokens, formats)),
      slot_layout_(model::slot_layout(config, backtracking, formats)),
      section_of_layer_(config.layers),
      compressor_of_layer_(config.layers),
      window_codes_(numeric::code_bytes(formats.window, config.head_dim)),
      entry_codes_(numeric::code_bytes(formats.compressed, config.head_dim)),
      index_codes_(numeric::code_bytes(formats.index, config.index_head_dim)),
      index_scales_(numeric::scale_bytes(formats.index, config.index_head_dim)),
      pages_(pages),
      slots_(slots),
      page_memory_(allocate(pages * page_layout_.stride)),
      slot_memory_(allocate(slots * slot_layout_.stride)) {
  for (std::size_t i = 0; i < page_layout_.sections.size(); ++i)
    section_of_layer_[page_layout_.sections[i].layer] = i;
  for (std::size_t i = 0; i < slot_layout_.compressors.size(); ++i) {
    compressor_of_layer_[slot_layout_.compressors[i].layer] = i;
  }
}

void CacheMemory::load_window(const std::uint8_t* record, std::span<float> values) const {
  unpack_row(formats_.window, record, record + window_codes_, values);
}

void CacheMemory::store_window(std::uint8_t* record, std::span<const float> values) const {
  pack_row(formats_.window, values, record, record + window_codes_);
}

void CacheMemory::load_entry(const model::PageSection& section, const std::int32_t* blocks,
                             std::int64_t entry, std::span<float> values) {
  const std::uint8_t* record = entry_page(section, blocks, entry) + section.main_offset +
                               entry % section.rows * section.main_row_bytes;
  unpack_row(formats_.compressed, record, record + entry_codes_, values);
}

void CacheMemory::store_entry(const model::PageSection& section, const std::int32_t* blocks,
                              std::int64_t entry, std::span<const float> values) {
  std::uint8_t* record = entry_page(section, blocks, entry) + section.main_offset +
                         entry % section.rows * section.main_row_bytes;
  pack_row(formats_.compressed, values, record, record + entry_codes_);
}

void CacheMemory::load_index(const model::PageSection& section, const std::int32_t* blocks,
                             std::int64_t entry, std::span<float> values) {
  const std::uint8_t* codes = entry_page(section, blocks, entry) + section.index_offset;
  const std::int64_t row = entry % section.rows;
  unpack_row(formats_.index, codes + row * index_codes_,
             codes + section.rows * index_codes_ + row * index_scales_, values);
}

void CacheMemory::store_index(const model::PageSection& section, const std::int32_t* blocks,
                              std::int64_t entry, std::span<const float> values) {
  std::uint8_t* codes = entry_page(section, blocks, entry) + section.index_offset;
  const std::int64_t row = entry % section.rows;
  pack_row(formats_.index, values, codes + row * index_codes_,
           codes + section.rows * index_codes_ + row * index_scales_);
}

}  // namespace thalweg::backend::cpu
