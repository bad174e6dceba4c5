// What the cache asks of a backend: moving whole records on and off the device.
#pragma once

#include <cstddef>
#include <span>

#include "cache/types.hpp"

namespace thalweg::cache {

enum class SlotSection { encoder, decoder };

/// A backend's store of blocks and slots. Called by the scheduler thread only. Every call takes effect after
/// the steps launched before it and before the steps launched after it (on a GPU: the same stream). Ids come
/// from the pools and are valid; spans are exactly one record (or section) long. Failures of the device throw
/// WorkError.
class CacheDevice {
 public:
  virtual ~CacheDevice() = default;

  virtual void copy_block(BlockId from, BlockId to) = 0;
  /// `bytes` holds the record when the call returns.
  virtual void read_block(BlockId block, std::span<std::byte> bytes) = 0;
  /// `bytes` may be reused when the call returns.
  virtual void write_block(BlockId block, std::span<const std::byte> bytes) = 0;

  virtual void copy_slot(SlotId from, SlotId to, SlotSection section) = 0;
  virtual void read_slot(SlotId slot, SlotSection section, std::span<std::byte> bytes) = 0;
  virtual void write_slot(SlotId slot, SlotSection section, std::span<const std::byte> bytes) = 0;
  /// Sets both sections to zero, so that no sequence ever sees state of an earlier one.
  virtual void clear_slot(SlotId slot) = 0;
};

}  // namespace thalweg::cache
