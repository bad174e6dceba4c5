// The device's thread: runs steps and cache copies in the order they were given, like one stream of a GPU.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "backend/backend.hpp"
#include "cache/device.hpp"
#include "engine/step.hpp"
#include "engine/token_drawer.hpp"

namespace thalweg::engine {

/// One thread gives commands (the scheduler's), one executes them. The queue is a ring of fixed size: nothing
/// is allocated and no lock is taken between them.
class Executor final : public cache::CacheDevice {
 public:
  /// `backend` must outlive it.
  explicit Executor(backend::Backend& backend);
  ~Executor() override;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Starts `step`; it belongs to the device until `wait` has returned for it. Its references stand for
  /// tokens of the step launched before it.
  void launch(Step& step);
  /// Returns when `step` is done. A failure of the device is in `step.error`.
  void wait(const Step& step);
  /// Returns when every command so far has been executed.
  void drain();

  // Cache copies, in order with the steps. Reads and writes return when the bytes are there or taken.
  void copy_block(cache::BlockId from, cache::BlockId to) override;
  void read_block(cache::BlockId block, std::span<std::byte> bytes) override;
  void write_block(cache::BlockId block, std::span<const std::byte> bytes) override;
  void copy_slot(cache::SlotId from, cache::SlotId to, cache::SlotSection section) override;
  void read_slot(cache::SlotId slot, cache::SlotSection section, std::span<std::byte> bytes) override;
  void write_slot(cache::SlotId slot, cache::SlotSection section, std::span<const std::byte> bytes) override;
  void clear_slot(cache::SlotId slot) override;

  /// Sizes of records as the cache sees them.
  cache::Geometry geometry() const;

 private:
  enum class Kind {
    step,
    copy_block,
    read_block,
    write_block,
    copy_slot,
    read_slot,
    write_slot,
    clear_slot,
    stop
  };
  /// Bytes of a slot; none if the size is 0.
  struct Part {
    std::size_t offset = 0;
    std::size_t size = 0;
  };
  struct Command {
    Kind kind = Kind::stop;
    Step* step = nullptr;
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    cache::SlotSection section = cache::SlotSection::encoder;
    std::byte* bytes = nullptr;
  };
  static constexpr std::size_t kQueue = 256;

  std::uint64_t put(const Command& command);
  void finish(std::uint64_t ticket);
  void run_commands();
  void execute(const Command& command);
  void run_step(Step& step);
  void move_slot(const Command& command);
  std::array<Part, 2> parts_of(cache::SlotSection section) const;

  backend::Backend& backend_;
  TokenDrawer drawer_;
  std::vector<std::int32_t> drawn_;  ///< by sample: the newest token of the step before
  std::array<Command, kQueue> queue_;
  std::atomic<std::uint64_t> given_{0};  ///< commands put so far
  std::atomic<std::uint64_t> done_{0};   ///< commands executed so far
  double last_end_ = 0;                  ///< when the device was last busy with a step
  std::thread thread_;
};

}  // namespace thalweg::engine
