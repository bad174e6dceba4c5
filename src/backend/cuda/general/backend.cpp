#include "backend/backend.hpp"

#include <fmt/format.h>

#include "backend/cuda/general/ops.hpp"
#include "base/error.hpp"
#include "model/draft.hpp"
#include "model/forward.hpp"

namespace thalweg::backend {
namespace {

namespace gpu = thalweg::cuda::general;
using thalweg::cuda::check;

// Names the device before anything is allocated on it.
std::string usable_device() {
  const char* reason = "";
  if (!thalweg::cuda::device_usable(&reason)) throw WorkError(fmt::format("--backend cuda: {}", reason));
  return thalweg::cuda::device_name();
}

void expect_at_most(const char* field, std::int64_t value, std::int64_t most) {
  if (value <= most) return;
  throw InputError(std::string("config.json: ") + field, fmt::format("at most {} on the CUDA backend", most),
                   std::to_string(value));
}

// What the kernels hold in registers or shared memory.
void check_sizes(const checkpoint::ModelConfig& config) {
  expect_at_most("index_head_dim", config.index_head_dim, 512);
  expect_at_most("n_routed_experts", config.routed_experts, 512);
  expect_at_most("num_experts_per_tok", config.experts_per_token, 32);
  const std::int64_t keys = config.sliding_window + config.index_topk + config.draft.block_size;
  expect_at_most("sliding_window + index_topk + block size + head_dim", keys + config.head_dim, 12 * 1024);
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(const model::Model& model, const BackendOptions& options)
      : model_(model),
        precision_(options.precision),
        device_(usable_device()),
        weights_((check_sizes(model.config()), model)),
        memory_(model.config(), model::cache_formats(options.precision),
                options.backtracking > 0 ? options.backtracking : model::default_backtracking(model.config()),
                options.pages, options.slots),
        ops_(model, weights_, memory_, options.precision == model::Precision::reference) {}

  std::string describe() const override {
    return fmt::format("cuda, precision {}, {}", model::precision_name(precision_), device_);
  }
  const model::Model& model() const override { return model_; }
  const model::PageLayout& page_layout() const override { return memory_.page_layout(); }
  const model::SlotLayout& slot_layout() const override { return memory_.slot_layout(); }
  model::Precision precision() const override { return precision_; }

  void run(const model::StepPlan& plan) override {
    model::forward(ops_, model_, plan);
    if (!model_.draft_layers().empty()) model::draft_context(ops_, model_);
    check(cudaDeviceSynchronize(), "step");
  }
  std::span<const float> logits(std::size_t i) const override { return ops_.logits(i); }

  DraftResult draft(std::span<const model::DraftSequence> sequences, const DraftChoice& choose) override {
    model::draft(ops_, model_, sequences, choose);
    ops_.end_draft();
    return {ops_.draft_tokens(), ops_.draft_confidence()};
  }

  void read_page(std::int32_t page, std::span<std::uint8_t> bytes) const override {
    copy(bytes.data(), memory_.page(page), bytes.size());
  }
  void write_page(std::int32_t page, std::span<const std::uint8_t> bytes) override {
    copy(memory_.page(page), bytes.data(), bytes.size());
  }
  void copy_page(std::int32_t from, std::int32_t to) override {
    copy(memory_.page(to), memory_.page(from), static_cast<std::size_t>(memory_.page_layout().stride));
  }
  void read_slot(std::int32_t slot, std::size_t offset, std::span<std::uint8_t> bytes) const override {
    copy(bytes.data(), memory_.slot(slot) + offset, bytes.size());
  }
  void write_slot(std::int32_t slot, std::size_t offset, std::span<const std::uint8_t> bytes) override {
    copy(memory_.slot(slot) + offset, bytes.data(), bytes.size());
  }
  void copy_slot(std::int32_t from, std::int32_t to, std::size_t offset, std::size_t size) override {
    copy(memory_.slot(to) + offset, memory_.slot(from) + offset, size);
  }
  void clear_slot(std::int32_t slot) override {
    check(cudaMemsetAsync(memory_.slot(slot), 0, static_cast<std::size_t>(memory_.slot_layout().stride)),
          "clear slot");
  }

  void observe(model::Observer* observer) override { ops_.observe(observer); }

 private:
  // The runtime knows which of the places lie on the device.
  static void copy(void* to, const void* from, std::size_t size) {
    check(cudaMemcpy(to, from, size, cudaMemcpyDefault), "copy cache record");
  }

  const model::Model& model_;
  model::Precision precision_;
  std::string device_;
  gpu::DeviceWeights weights_;
  gpu::CacheMemory memory_;
  gpu::Ops ops_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const model::Model& model, const BackendOptions& options) {
  return std::make_unique<CudaBackend>(model, options);
}

}  // namespace thalweg::backend
