#include "backend/backend.hpp"

#include <fmt/format.h>

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

  std::span<std::uint8_t> page(std::int32_t page) override { return memory_.page(page); }
  std::span<std::uint8_t> slot(std::int32_t slot) override { return memory_.slot(slot); }
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
