// Cache layout against the published numbers, and its invariants for other shapes.
#include "model/cache_layout.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace thalweg::model {
namespace {

using checkpoint::load_config;
using checkpoint::ModelConfig;

std::filesystem::path source_directory() {
  return THALWEG_SOURCE_DIR;
}

ModelConfig released() {
  return load_config(source_directory() / "tests/data/released_config.json");
}

TEST(CacheLayout, ATokenAddsThePublishedBytes) {
  EXPECT_EQ(global_bytes_per_token(released()), 890.0);
}

TEST(CacheLayout, APageHasThePublishedOffsets) {
  const PageLayout page = page_layout(released());
  ASSERT_EQ(page.sections.size(), 4U);
  EXPECT_EQ(page.sections[0].index_offset, 0);
  EXPECT_EQ(page.sections[0].main_offset, 4352);
  EXPECT_EQ(page.sections[0].rows, 64);
  EXPECT_EQ(page.sections[0].index_row_bytes, 68);
  EXPECT_EQ(page.sections[0].main_row_bytes, 288);
  EXPECT_EQ(page.sections[1].index_offset, 22784);
  EXPECT_EQ(page.sections[2].index_offset, 45568);
  EXPECT_EQ(page.sections[3].index_offset, 68352);
  EXPECT_EQ(page.sections[3].main_offset, 77056);
  EXPECT_EQ(page.sections[3].rows, 128);
  EXPECT_EQ(page.used_bytes, 113'920);
  EXPECT_EQ(page.stride, 114'048);
  EXPECT_EQ(page.stride / page.tokens, 891);
}

TEST(CacheLayout, ASlotHasThePublishedSizes) {
  const ModelConfig config = released();
  EXPECT_EQ(default_backtracking(config), 6);
  const SlotLayout slot = slot_layout(config, default_backtracking(config));
  EXPECT_EQ(slot.window_tokens, 134);
  EXPECT_EQ(slot.window_row_bytes, 528);
  EXPECT_EQ(slot.window_ring_bytes, 70'752);
  EXPECT_EQ(slot.window_offsets.size(), 43U);
  EXPECT_EQ(slot.window_offsets[20], 1'415'040);
  EXPECT_EQ(slot.compressor_tokens, 7);
  ASSERT_EQ(slot.compressors.size(), 3U);
  EXPECT_EQ(slot.compressors[0].offset, 3'042'336);
  EXPECT_EQ(slot.compressors[0].bytes, 28'672);
  EXPECT_EQ(slot.compressors[2].layer, 14);
  EXPECT_EQ(slot.stride, 3'128'928);
}

void expect_consistent(const ModelConfig& config, const CacheFormats& formats) {
  const PageLayout page = page_layout(config, kPageTokens, formats);
  std::int64_t end = 0;
  for (const PageSection& section : page.sections) {
    EXPECT_GE(section.index_offset, end);
    EXPECT_EQ(section.index_offset % 32, 0);
    EXPECT_EQ(section.main_offset % 32, 0);
    EXPECT_GE(section.main_offset, section.index_offset + section.rows * section.index_row_bytes);
    end = section.main_offset + section.rows * section.main_row_bytes;
  }
  EXPECT_EQ(page.used_bytes, end);
  EXPECT_GE(page.stride, end);
  EXPECT_GE(static_cast<double>(page.stride), global_bytes_per_token(config, formats) * page.tokens);
  for (const int backtracking : {1, 2, 6}) {
    const SlotLayout slot = slot_layout(config, backtracking, formats);
    for (const CompressorRing& ring : slot.compressors) EXPECT_EQ(ring.offset % 4, 0);
    EXPECT_GE(slot.stride, slot.used_bytes);
    EXPECT_EQ(slot.window_tokens, config.sliding_window + backtracking);
  }
}

TEST(CacheLayout, SectionsNeitherOverlapNorLoseAlignment) {
  const CacheFormats unrounded{numeric::RowFormat::f32, numeric::RowFormat::f32, numeric::RowFormat::f32};
  for (const char* file :
       {"tests/data/released_config.json", "models/mini/config.json", "tests/data/tiny/model/config.json"}) {
    const ModelConfig config = load_config(source_directory() / file);
    expect_consistent(config, {});
    expect_consistent(config, unrounded);
  }
}

}  // namespace
}  // namespace thalweg::model
