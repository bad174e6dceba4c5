#include "backend/backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backend/cpu/gemm_kernels.hpp"
#include "backend/cpu/ops.hpp"
#include "model/draft.hpp"
#include "model/forward.hpp"

namespace thalweg::backend {
namespace cpu {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(const model::Model& model, const BackendOptions& options)
      : precision_(options.precision),
        pool_(options.threads),
        context_{model, pool_, Rounding(options.precision)},
        memory_(model.config(), context_.rounding.formats,
                options.backtracking > 0 ? options.backtracking : model::default_backtracking(model.config()),
                options.pages, options.slots),
        ops_(context_, memory_) {}

  std::string describe() const override {
    return fmt::format("cpu, precision {}, {} threads, {}", model::precision_name(precision_), pool_.size(),
                       simd_target());
  }
  const model::Model& model() const override { return context_.model; }
  const model::PageLayout& page_layout() const override { return memory_.page_layout(); }
  const model::SlotLayout& slot_layout() const override { return memory_.slot_layout(); }
  model::Precision precision() const override { return precision_; }

  void run(const model::StepPlan& plan) override {
    model::forward(ops_, context_.model, plan);
    if (!context_.model.draft_layers().empty()) model::draft_context(ops_, context_.model);
  }
  std::span<const float> logits(std::size_t i) const override { return ops_.logits(i); }

  DraftResult draft(std::span<const model::DraftSequence> sequences, const DraftChoice& choose) override {
    model::draft(ops_, context_.model, sequences, choose);
    return {ops_.draft_tokens(), ops_.draft_confidence()};
  }

  void read_page(std::int32_t page, std::span<std::uint8_t> bytes) const override {
    std::memcpy(bytes.data(), memory_.page(page).data(), bytes.size());
  }
  void write_page(std::int32_t page, std::span<const std::uint8_t> bytes) override {
    std::memcpy(memory_.page(page).data(), bytes.data(), bytes.size());
  }
  void copy_page(std::int32_t from, std::int32_t to) override {
    std::ranges::copy(memory_.page(from), memory_.page(to).begin());
  }
  void read_slot(std::int32_t slot, std::size_t offset, std::span<std::uint8_t> bytes) const override {
    std::memcpy(bytes.data(), memory_.slot(slot).data() + offset, bytes.size());
  }
  void write_slot(std::int32_t slot, std::size_t offset, std::span<const std::uint8_t> bytes) override {
    std::memcpy(memory_.slot(slot).data() + offset, bytes.data(), bytes.size());
  }
  void copy_slot(std::int32_t from, std::int32_t to, std::size_t offset, std::size_t size) override {
    std::memcpy(memory_.slot(to).data() + offset, memory_.slot(from).data() + offset, size);
  }
  void clear_slot(std::int32_t slot) override { std::ranges::fill(memory_.slot(slot), std::uint8_t{0}); }
  void observe(model::Observer* observer) override { ops_.observe(observer); }

 private:
  model::Precision precision_;
  ThreadPool pool_;
  Context context_;
  CacheMemory memory_;
  Ops ops_;
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(const model::Model& model, const BackendOptions& options) {
  return std::make_unique<cpu::CpuBackend>(model, options);
}

}  // namespace thalweg::backend
