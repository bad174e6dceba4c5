// What the engine asks of a device: run steps and move cache memory. `cpu/` implements it; other backends
// have the same operations, one a file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "model/cache_layout.hpp"
#include "model/model.hpp"
#include "model/observer.hpp"
#include "model/step.hpp"

namespace thalweg::backend {

/// Picks the token of one draft position from its logits [vocab]; called in order of steps, then sequences.
using DraftChoice =
    std::function<std::int32_t(std::int32_t sequence, int step, std::span<const float> logits)>;

/// Results of a draft pass, [sequences, block]; valid until the next call of the backend.
struct DraftResult {
  std::span<const std::int32_t> tokens;
  std::span<const float> confidence_logits;
};

/// Kinds of devices; which of them a build has, `make_backend` knows.
enum class Device : std::uint8_t { cpu, cuda };

/// The name on the command line: "cpu", "cuda".
const char* device_name(Device device);
/// Inverse of `device_name`. Throws UsageError for other names and for devices that this build lacks.
Device parse_device(std::string_view name);

struct BackendOptions {
  Device device = Device::cpu;
  model::Precision precision = model::Precision::reference;
  std::size_t threads = 0;  ///< 0: all processors of this process
  std::size_t pages = 0;    ///< pages of global KV, kPageTokens tokens each
  std::size_t slots = 1;    ///< sequences with window state
  int backtracking = 0;     ///< positions that a verification may take back; 0: what the draft model needs
};

/// One device with its cache memory. Calls come from one thread at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  /// For people: kind, precision, threads, instruction set.
  virtual std::string describe() const = 0;
  virtual const model::Model& model() const = 0;
  virtual const model::PageLayout& page_layout() const = 0;
  virtual const model::SlotLayout& slot_layout() const = 0;
  virtual model::Precision precision() const = 0;

  /// Runs a step: writes the caches of its rows (and of the draft model, if there is one). The plan is
  /// trusted: pages, slots and tokens are in range, every page of a sequence up to its last row is present.
  virtual void run(const model::StepPlan& plan) = 0;
  /// Logits [vocab] of the i-th of the plan's `logit_rows`, valid until the next run or draft.
  virtual std::span<const float> logits(std::size_t i) const = 0;
  /// Drafts a block for every sequence from the state of the steps before. Needs a model with a draft.
  virtual DraftResult draft(std::span<const model::DraftSequence> sequences, const DraftChoice& choose) = 0;

  // Records of the cache, for saving, restoring and sharing: whole pages, and slots in parts of
  // `bytes.size()` bytes from `offset`. Reads and writes have ended when the call returns.
  virtual void read_page(std::int32_t page, std::span<std::uint8_t> bytes) const = 0;
  virtual void write_page(std::int32_t page, std::span<const std::uint8_t> bytes) = 0;
  virtual void copy_page(std::int32_t from, std::int32_t to) = 0;
  virtual void read_slot(std::int32_t slot, std::size_t offset, std::span<std::uint8_t> bytes) const = 0;
  virtual void write_slot(std::int32_t slot, std::size_t offset, std::span<const std::uint8_t> bytes) = 0;
  virtual void copy_slot(std::int32_t from, std::int32_t to, std::size_t offset, std::size_t size) = 0;
  virtual void clear_slot(std::int32_t slot) = 0;

  /// Watches the intermediates of the following calls; null stops.
  virtual void observe(model::Observer* observer) = 0;
};

/// The backend of `options.device`. The model must outlive it. Throws UsageError if this build lacks the
/// device, WorkError or std::bad_alloc if it cannot be used or has not enough memory.
std::unique_ptr<Backend> make_backend(const model::Model& model, const BackendOptions& options);

/// The CPU backend. The model must outlive it. Throws std::bad_alloc if the cache memory cannot be had.
std::unique_ptr<Backend> make_cpu_backend(const model::Model& model, const BackendOptions& options);
/// The CUDA backend, in builds that have it, on device 0.
std::unique_ptr<Backend> make_cuda_backend(const model::Model& model, const BackendOptions& options);

}  // namespace thalweg::backend
