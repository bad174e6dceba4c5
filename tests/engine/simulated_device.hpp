// A simulated device for the scheduler: it runs real plans on real blocks and slots, but its model is a hash
// of everything a row depends on, so one wrong byte, block, slot or order changes every later token. What an
// answer must be follows from prompt and seed alone (`expected_answer`).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cache/device.hpp"
#include "engine/step.hpp"

namespace thalweg::engine::simulated {

constexpr std::uint32_t kBlock = 4;          ///< positions of a block
constexpr std::int64_t kWindow = 3;          ///< positions before its own that a row's window sees
constexpr std::int64_t kRing = kWindow + 2;  ///< window, own position, one to take back
constexpr std::int32_t kVocab = 40;
constexpr std::int32_t kEnd = 0;  ///< end of sequence

struct Record {
  std::int64_t position = -1;
  std::uint64_t value = 0;
};
using Ring = std::array<Record, kRing>;

inline cache::Geometry geometry() {
  return {.block_tokens = kBlock,
          .block_bytes = kBlock * 8,
          .encoder_bytes = sizeof(Ring),
          .decoder_bytes = sizeof(Ring)};
}

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a + 0x9E3779B97F4A7C15) ^ (b * 0xC2B2AE3D27D4EB4F);
  x = (x ^ (x >> 31)) * 0xD6E8FEB86659FD93;
  return x ^ (x >> 29);
}

/// One half of the model at a position: its window, and far positions of the global rows.
template <class Window, class Global>
std::uint64_t half(std::uint64_t input, std::int64_t position, std::int64_t floor, const Window& window,
                   const Global& global) {
  std::uint64_t value = mix(input, static_cast<std::uint64_t>(position));
  for (std::int64_t p = std::max(floor, position - kWindow); p < position; ++p) value = mix(value, window(p));
  for (const std::int64_t p : {std::int64_t{0}, position / 3, position / 2, position - 1}) {
    if (p >= 0 && p < position) value = mix(value, global(p));
  }
  return value;
}

inline std::int32_t draw(std::uint64_t value, std::uint64_t seed, std::int64_t position) {
  const std::uint64_t noise = mix(mix(value, seed), static_cast<std::uint64_t>(position));
  return noise % 64 == 0 ? kEnd : static_cast<std::int32_t>(1 + noise % (kVocab - 1));
}

/// The tokens that follow `prompt`, computed from the tokens alone.
inline std::vector<std::int32_t> expected_answer(std::vector<std::int32_t> tokens, std::uint64_t seed,
                                                 std::int64_t max_length, std::int64_t floor) {
  const std::size_t prompt = tokens.size();
  std::vector<std::uint64_t> encoder, decoder;
  for (std::int64_t p = 0;; ++p) {
    const auto at = [](const std::vector<std::uint64_t>& values) {
      return [&values](std::int64_t position) { return values[static_cast<std::size_t>(position)]; };
    };
    encoder.push_back(half(static_cast<std::uint64_t>(tokens[p]), p, 0, at(encoder), at(encoder)));
    decoder.push_back(p < floor ? 0 : half(encoder.back(), p, floor, at(decoder), at(encoder)));
    if (p + 1 < static_cast<std::int64_t>(tokens.size())) continue;
    tokens.push_back(draw(decoder.back(), seed, p + 1));
    if (tokens.back() == kEnd || static_cast<std::int64_t>(tokens.size()) >= max_length) break;
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt), tokens.end()};
}

/// Executes commands when they are given: their order is all that matters.
class Device final : public cache::CacheDevice {
 public:
  Device(std::uint32_t blocks, std::uint32_t slots) : blocks_(blocks), encoder_(slots), decoder_(slots) {}

  /// Runs the rows and draws; the newest tokens of the step before are remembered, as a device does.
  void run(Step& step) {
    std::vector<std::uint64_t> values(step.plan.tokens.size());
    for (const model::StepSequence& part : step.plan.sequences) {
      for (std::int32_t i = 0; i < part.rows; ++i) {
        const std::int32_t row = part.first_row + i;
        std::int32_t token = step.plan.tokens[row];
        if (token < 0) token = drawn_.at(static_cast<std::size_t>(-1 - token));
        values[row] = compute(step.plan, part, part.first_position + i, token, i < part.dropped_rows);
      }
    }
    drawn_.clear();
    for (std::size_t i = 0; i < step.sample_count; ++i) {
      SampleTask& task = step.samples[i];
      const std::uint64_t value = values[step.plan.logit_rows[task.logits]];
      task.tokens.push_back(draw(value, task.state->sampler().seed(), task.position));
      drawn_.push_back(task.tokens.back());
    }
    rows_ += values.size();
  }
  std::uint64_t rows() const { return rows_; }

  void copy_block(cache::BlockId from, cache::BlockId to) override { block(to) = block(from); }
  void read_block(cache::BlockId id, std::span<std::byte> bytes) override { out(block(id), bytes); }
  void write_block(cache::BlockId id, std::span<const std::byte> bytes) override { in(bytes, block(id)); }
  void copy_slot(cache::SlotId from, cache::SlotId to, cache::SlotSection which) override {
    ring(to, which) = ring(from, which);
  }
  void read_slot(cache::SlotId id, cache::SlotSection which, std::span<std::byte> bytes) override {
    out(ring(id, which), bytes);
  }
  void write_slot(cache::SlotId id, cache::SlotSection which, std::span<const std::byte> bytes) override {
    in(bytes, ring(id, which));
  }
  void clear_slot(cache::SlotId id) override {
    ring(id, cache::SlotSection::encoder) = {};
    ring(id, cache::SlotSection::decoder) = {};
  }

 private:
  using Block = std::array<std::uint64_t, kBlock>;

  Block& block(std::uint32_t id) {
    cache::check(id != cache::kNil, "the simulated device got block 0");
    return blocks_.at(id);
  }
  Ring& ring(std::uint32_t id, cache::SlotSection which) {
    cache::check(id != cache::kNil, "the simulated device got slot 0");
    return which == cache::SlotSection::encoder ? encoder_.at(id) : decoder_.at(id);
  }
  template <class T>
  static void out(const T& record, std::span<std::byte> bytes) {
    cache::check(bytes.size() == sizeof record, "a simulated copy of the wrong size");
    std::memcpy(bytes.data(), &record, sizeof record);
  }
  template <class T>
  static void in(std::span<const std::byte> bytes, T& record) {
    cache::check(bytes.size() == sizeof record, "a simulated copy of the wrong size");
    std::memcpy(&record, bytes.data(), sizeof record);
  }

  std::uint64_t compute(const model::StepPlan& plan, const model::StepSequence& part, std::int64_t position,
                        std::int32_t token, bool dropped) {
    const auto slot = static_cast<std::uint32_t>(part.slot);
    const auto row = [&](std::int64_t p) -> std::uint64_t& {
      return block(static_cast<std::uint32_t>(plan.blocks.at(
          static_cast<std::size_t>(part.first_block + p / kBlock))))[static_cast<std::size_t>(p) % kBlock];
    };
    const auto window = [&](cache::SlotSection which) {
      return [this, slot, which](std::int64_t p) {
        const Record& record = ring(slot, which)[static_cast<std::size_t>(p % kRing)];
        EXPECT_EQ(record.position, p) << "a window row is not there";
        return record.value;
      };
    };
    const auto keep = [&](cache::SlotSection which, std::uint64_t value) {
      ring(slot, which)[static_cast<std::size_t>(position % kRing)] = {position, value};
    };
    const std::uint64_t encoder =
        half(static_cast<std::uint64_t>(token), position, 0, window(cache::SlotSection::encoder), row);
    keep(cache::SlotSection::encoder, encoder);
    row(position) = encoder;
    if (dropped) return 0;
    const std::uint64_t decoder =
        half(encoder, position, part.decoder_floor, window(cache::SlotSection::decoder), row);
    keep(cache::SlotSection::decoder, decoder);
    return decoder;
  }

  std::vector<Block> blocks_;
  std::vector<Ring> encoder_;
  std::vector<Ring> decoder_;
  std::vector<std::int32_t> drawn_;
  std::uint64_t rows_ = 0;
};

}  // namespace thalweg::engine::simulated
