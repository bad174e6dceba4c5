#include "engine/executor.hpp"

#include <algorithm>
#include <chrono>

#include "engine/request.hpp"
#include "model/layers.hpp"

namespace thalweg::engine {
namespace {

double now() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

}  // namespace

Executor::Executor(backend::Backend& backend)
    : backend_(backend), drawer_(backend), thread_([this] { run_commands(); }) {}

Executor::~Executor() {
  put({});
  thread_.join();
}

// Spins shortly: the other side answers within microseconds or after a whole step.
std::uint64_t Executor::put(const Command& command) {
  const std::uint64_t ticket = given_.load(std::memory_order_relaxed);
  if (ticket >= kQueue) finish(ticket - kQueue);
  queue_[ticket % kQueue] = command;
  // Sequentially consistent: the notification must not miss a thread that is about to wait.
  given_.store(ticket + 1);
  given_.notify_one();
  return ticket;
}

void Executor::finish(std::uint64_t ticket) {
  for (std::uint64_t done = done_.load(std::memory_order_acquire); done <= ticket;
       done = done_.load(std::memory_order_acquire)) {
    done_.wait(done, std::memory_order_acquire);
  }
}

void Executor::run_commands() {
  for (std::uint64_t next = 0;; ++next) {
    while (given_.load(std::memory_order_acquire) <= next) given_.wait(next, std::memory_order_acquire);
    const Command command = queue_[next % kQueue];
    if (command.kind == Kind::stop) return;
    execute(command);
    done_.store(next + 1);
    done_.notify_one();
  }
}

void Executor::launch(Step& step) {
  step.ticket = put({.kind = Kind::step, .step = &step});
}

void Executor::wait(const Step& step) {
  finish(step.ticket);
}

void Executor::drain() {
  const std::uint64_t given = given_.load(std::memory_order_relaxed);
  if (given > 0) finish(given - 1);
}

void Executor::run_step(Step& step) {
  const double begin = now();
  step.gap = last_end_ > 0 ? begin - last_end_ : 0;
  try {
    for (std::int32_t& token : step.plan.tokens) {
      if (token < 0) token = drawn_[-1 - token];
    }
    backend_.run(step.plan);
    drawer_.draw(step);
    // Kept apart: the host may plan into this step's arrays as soon as it is done.
    drawn_.clear();
    for (std::size_t i = 0; i < step.sample_count; ++i) drawn_.push_back(step.samples[i].tokens.back());
  } catch (...) {
    step.error = std::current_exception();
  }
  last_end_ = now();
  step.seconds = last_end_ - begin;
}

cache::Geometry Executor::geometry() const {
  const model::SlotLayout& slot = backend_.slot_layout();
  const std::size_t border = slot.window_offsets.empty() ? 0 : backend_.model().border();
  const std::size_t windows = border * slot.window_ring_bytes;
  const std::size_t end = slot.window_offsets.size() * slot.window_ring_bytes;
  return {.block_tokens = model::kPageTokens,
          .block_bytes = static_cast<std::size_t>(backend_.page_layout().stride),
          .encoder_bytes = windows + (slot.stride - end),
          .decoder_bytes = end - windows};
}

// The encoder section is the first rings and what follows all rings (the compressor rings); the decoder
// section lies between them.
std::array<Executor::Part, 2> Executor::parts_of(cache::SlotSection section) const {
  const model::SlotLayout& layout = backend_.slot_layout();
  const auto first = static_cast<std::size_t>(backend_.model().border() * layout.window_ring_bytes);
  const auto end = static_cast<std::size_t>(static_cast<std::int64_t>(layout.window_offsets.size()) *
                                            layout.window_ring_bytes);
  if (section == cache::SlotSection::decoder) return {{{first, end - first}, {end, 0}}};
  return {{{0, first}, {end, static_cast<std::size_t>(layout.stride) - end}}};
}

void Executor::move_slot(const Command& command) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(command.bytes);
  const auto from = static_cast<std::int32_t>(command.from);
  const auto to = static_cast<std::int32_t>(command.to);
  for (const Part& part : parts_of(command.section)) {
    if (part.size == 0) continue;
    if (command.kind == Kind::copy_slot) {
      backend_.copy_slot(from, to, part.offset, part.size);
      continue;
    }
    if (command.kind == Kind::read_slot) {
      backend_.read_slot(from, part.offset, {bytes, part.size});
    } else {
      backend_.write_slot(to, part.offset, {bytes, part.size});
    }
    bytes += part.size;
  }
}

void Executor::execute(const Command& command) {
  const auto from = static_cast<std::int32_t>(command.from);
  const auto to = static_cast<std::int32_t>(command.to);
  const auto page = static_cast<std::size_t>(backend_.page_layout().stride);
  auto* bytes = reinterpret_cast<std::uint8_t*>(command.bytes);
  switch (command.kind) {
    case Kind::step:
      run_step(*command.step);
      return;
    case Kind::copy_block:
      backend_.copy_page(from, to);
      return;
    case Kind::read_block:
      backend_.read_page(from, {bytes, page});
      return;
    case Kind::write_block:
      backend_.write_page(to, {bytes, page});
      return;
    case Kind::copy_slot:
    case Kind::read_slot:
    case Kind::write_slot:
      move_slot(command);
      return;
    case Kind::clear_slot:
      backend_.clear_slot(to);
      return;
    case Kind::stop:
      return;
  }
}

void Executor::copy_block(cache::BlockId from, cache::BlockId to) {
  put({.kind = Kind::copy_block, .from = from, .to = to});
}
void Executor::read_block(cache::BlockId block, std::span<std::byte> bytes) {
  finish(put({.kind = Kind::read_block, .from = block, .bytes = bytes.data()}));
}
void Executor::write_block(cache::BlockId block, std::span<const std::byte> bytes) {
  finish(put({.kind = Kind::write_block, .to = block, .bytes = const_cast<std::byte*>(bytes.data())}));
}
void Executor::copy_slot(cache::SlotId from, cache::SlotId to, cache::SlotSection section) {
  put({.kind = Kind::copy_slot, .from = from, .to = to, .section = section});
}
void Executor::read_slot(cache::SlotId slot, cache::SlotSection section, std::span<std::byte> bytes) {
  finish(put({.kind = Kind::read_slot, .from = slot, .section = section, .bytes = bytes.data()}));
}
void Executor::write_slot(cache::SlotId slot, cache::SlotSection section, std::span<const std::byte> bytes) {
  finish(put({.kind = Kind::write_slot,
              .to = slot,
              .section = section,
              .bytes = const_cast<std::byte*>(bytes.data())}));
}
void Executor::clear_slot(cache::SlotId slot) {
  put({.kind = Kind::clear_slot, .to = slot});
}

}  // namespace thalweg::engine
