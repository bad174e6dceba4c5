// A device in host memory, and a model whose state is a hash of everything it depends on: a wrong byte
// anywhere in blocks or windows changes every later answer.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "cache/prefix_cache.hpp"

namespace thalweg::cache::simulated {

/// Position rows of 8 bytes; encoder section [state, position], decoder section [state, position].
inline Geometry geometry(std::uint32_t block_tokens) {
  return {.block_tokens = block_tokens,
          .block_bytes = block_tokens * 8U,
          .encoder_bytes = 16,
          .decoder_bytes = 16};
}

class Device final : public CacheDevice {
 public:
  Device(const Geometry& sizes, std::uint32_t blocks, std::uint32_t slots)
      : sizes_(sizes), blocks_(blocks * sizes.block_bytes), slots_(slots * sizes.slot_bytes()) {}

  std::span<std::byte> block(BlockId id) {
    check(id != kNil, "a simulated device got block 0");
    return std::span(blocks_).subspan(id * sizes_.block_bytes, sizes_.block_bytes);
  }
  std::span<std::byte> section(SlotId id, SlotSection which) {
    check(id != kNil, "a simulated device got slot 0");
    const auto slot = std::span(slots_).subspan(id * sizes_.slot_bytes(), sizes_.slot_bytes());
    return which == SlotSection::encoder ? slot.first(sizes_.encoder_bytes)
                                         : slot.subspan(sizes_.encoder_bytes);
  }

  void copy_block(BlockId from, BlockId to) override { copy(block(from), block(to)); }
  void read_block(BlockId id, std::span<std::byte> bytes) override { copy(block(id), bytes); }
  void write_block(BlockId id, std::span<const std::byte> bytes) override { copy(bytes, block(id)); }
  void copy_slot(SlotId from, SlotId to, SlotSection which) override {
    copy(section(from, which), section(to, which));
  }
  void read_slot(SlotId id, SlotSection which, std::span<std::byte> bytes) override {
    copy(section(id, which), bytes);
  }
  void write_slot(SlotId id, SlotSection which, std::span<const std::byte> bytes) override {
    copy(bytes, section(id, which));
  }
  void clear_slot(SlotId id) override {
    for (const SlotSection which : {SlotSection::encoder, SlotSection::decoder}) {
      std::ranges::fill(section(id, which), std::byte{0});
    }
  }

 private:
  static void copy(std::span<const std::byte> from, std::span<std::byte> to) {
    check(from.size() == to.size(), "a simulated copy between records of different sizes");
    std::memcpy(to.data(), from.data(), from.size());
  }

  Geometry sizes_;
  std::vector<std::byte> blocks_;
  std::vector<std::byte> slots_;
};

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a + 0x9E3779B97F4A7C15) ^ (b * 0xC2B2AE3D27D4EB4F);
  x = (x ^ (x >> 31)) * 0xD6E8FEB86659FD93;
  return x ^ (x >> 29);
}

/// What the model sees at a position: the token, or where in which image it is.
inline std::uint64_t input_at(const Content& content, std::int64_t position) {
  const auto token = static_cast<std::uint64_t>(content.tokens[static_cast<std::size_t>(position)]);
  for (const ImageSpan& image : content.images) {
    if (image.begin <= position && position < image.begin + image.tokens) {
      return mix(image.digest.low, mix(token, static_cast<std::uint64_t>(position - image.begin)));
    }
  }
  return token;
}

/// One window section: a hash of all inputs since `begin`, and the next position.
struct State {
  std::uint64_t hash = 0;
  std::uint64_t position = 0;
  friend bool operator==(const State&, const State&) = default;
};

/// State of the encoder half after `length` tokens, computed from the tokens alone.
inline State encoder_after(const Content& content, std::int64_t length) {
  State state;
  for (std::int64_t p = 0; p < length; ++p)
    state = {mix(state.hash, input_at(content, p)), state.position + 1};
  return state;
}

inline std::uint64_t row_of(const State& encoder_after_row) {
  return mix(encoder_after_row.hash, 7);
}

/// The running half of the simulation: reads and writes only through the device.
class Model {
 public:
  Model(PrefixCache& cache, Device& device, std::uint32_t block_tokens)
      : cache_(cache), device_(device), block_tokens_(block_tokens) {}

  /// Computes rows [begin, end), which were reserved. Rows before `decoder_from` skip the decoder half.
  void run(Sequence& sequence, const Content& content, std::int64_t begin, std::int64_t end,
           std::int64_t decoder_from = 0) {
    for (std::int64_t p = begin; p < end; ++p) {
      State encoder = load(sequence.slot(), SlotSection::encoder);
      ASSERT_EQ(encoder.position, static_cast<std::uint64_t>(p));
      encoder = {mix(encoder.hash, input_at(content, p)), encoder.position + 1};
      store(sequence.slot(), SlotSection::encoder, encoder);
      write_row(sequence, p, row_of(encoder));
      if (p < decoder_from) continue;
      const State decoder = load(sequence.slot(), SlotSection::decoder);
      store(sequence.slot(), SlotSection::decoder,
            {mix(decoder.hash, row_of(encoder)), static_cast<std::uint64_t>(p) + 1});
    }
  }

  void write_row(Sequence& sequence, std::int64_t position, std::uint64_t row) {
    const BlockId block = sequence.blocks()[static_cast<std::size_t>(position) / block_tokens_];
    ASSERT_EQ(cache_.references(block), 1U) << "a shared block is about to be written";
    std::memcpy(device_.block(block).data() + static_cast<std::size_t>(position) % block_tokens_ * 8, &row,
                8);
  }

  std::uint64_t row(const Sequence& sequence, std::int64_t position) {
    const BlockId block = sequence.blocks()[static_cast<std::size_t>(position) / block_tokens_];
    std::uint64_t row = 0;
    std::memcpy(&row, device_.block(block).data() + static_cast<std::size_t>(position) % block_tokens_ * 8,
                8);
    return row;
  }

  State load(SlotId slot, SlotSection section) {
    State state;
    std::memcpy(&state, device_.section(slot, section).data(), sizeof state);
    return state;
  }

  /// Everything a next step would read is what a cold run of `computed` tokens leaves, the decoder half
  /// having begun at `decoder_from`.
  void expect_cold_state(const Sequence& sequence, const Content& content, std::int64_t computed,
                         std::int64_t decoder_from) {
    State encoder;
    State decoder;
    for (std::int64_t p = 0; p < computed; ++p) {
      encoder = {mix(encoder.hash, input_at(content, p)), encoder.position + 1};
      ASSERT_EQ(row(sequence, p), row_of(encoder)) << "row " << p << " of " << computed;
      if (p >= decoder_from)
        decoder = {mix(decoder.hash, row_of(encoder)), static_cast<std::uint64_t>(p) + 1};
    }
    EXPECT_EQ(load(sequence.slot(), SlotSection::encoder), encoder);
    EXPECT_EQ(load(sequence.slot(), SlotSection::decoder), decoder);
  }

 private:
  void store(SlotId slot, SlotSection section, const State& state) {
    std::memcpy(device_.section(slot, section).data(), &state, sizeof state);
  }

  PrefixCache& cache_;
  Device& device_;
  std::uint32_t block_tokens_;
};

/// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-cache-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

  /// Record files below it, sorted.
  std::vector<std::filesystem::path> records() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      if (entry.is_regular_file() && entry.path().filename() != "lock") files.push_back(entry.path());
    }
    std::ranges::sort(files);
    return files;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace thalweg::cache::simulated
