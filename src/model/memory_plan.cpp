#include "model/memory_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "checkpoint/checkpoint.hpp"
#include "model/cache_layout.hpp"

namespace thalweg::model {
namespace {

using checkpoint::DType;
using checkpoint::ModelConfig;
using checkpoint::TensorInfo;

constexpr std::int64_t kMostSequences = std::int64_t{1} << 20;
constexpr std::int64_t kScoreRows = 128;  // rows whose index scores are held at once

// Parts in the order they are listed; the numbers index `empty_parts`.
enum Part : std::size_t {
  kExperts,
  kTables,
  kAttention,
  kShared,
  kEmbedding,
  kHead,
  kEngram,
  kRouters,
  kIndexers,
  kMixing,
  kCompressors,
  kNorms,
  kDraftExperts,
  kDraft,
  kVision,
};

std::vector<WeightPart> empty_parts() {
  return {{"routed experts", Placement::spread},
          {"Engram tables", Placement::table},
          {"attention", Placement::everywhere},
          {"shared experts", Placement::everywhere},
          {"embedding", Placement::everywhere},
          {"head", Placement::everywhere},
          {"Engram projections", Placement::everywhere},
          {"routers", Placement::everywhere},
          {"indexers", Placement::everywhere},
          {"stream mixing", Placement::everywhere},
          {"compressors", Placement::everywhere},
          {"norms", Placement::everywhere},
          {"draft: routed experts", Placement::spread},
          {"draft: everything else", Placement::everywhere},
          {"vision", Placement::everywhere}};
}

Part part_of(std::string_view name) {
  const auto has = [&](std::string_view piece) { return name.find(piece) != std::string_view::npos; };
  if (name.starts_with("mtp.")) return has(".experts.") ? kDraftExperts : kDraft;
  if (name.starts_with("vision.") || name.starts_with("aligner.") || name.starts_with("image_"))
    return kVision;
  if (name.starts_with("embed.")) return kEmbedding;
  if (name.starts_with("head.")) return kHead;
  if (has(".experts.")) return kExperts;
  if (has(".shared_experts.")) return kShared;
  if (has(".gate.")) return kRouters;
  if (has(".engram.embed.")) return kTables;
  if (has(".engram.")) return kEngram;
  if (has(".indexer.")) return kIndexers;
  if (has(".compressor.")) return kCompressors;
  if (has(".hc_")) return kMixing;
  return has(".attn.") ? kAttention : kNorms;
}

std::int64_t parameters(const TensorInfo& info) {
  if (info.dtype == DType::e8m0) return 0;
  const std::int64_t values = info.bytes / checkpoint::dtype_size(info.dtype);
  return info.dtype == DType::i8 ? 2 * values : values;
}

// Products and sums stay at the largest value instead of overflowing: a plan that large fits nowhere.
std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

std::int64_t divide_up(std::int64_t n, std::int64_t by) {
  return (n + by - 1) / by;
}

// Bytes of a row in the phase that needs most, besides the streams.
std::int64_t phase_bytes(const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t width = std::int64_t{config.heads} * config.head_dim;
  const std::int64_t normed = 3 * hidden;  // BF16, and rounded to FP8
  const std::int64_t attention =
      normed + 3 * config.q_lora_rank + 2 * 2 * width +
      3 * std::int64_t{config.o_groups} * config.o_lora_rank + 4 * config.head_dim +
      std::int64_t{config.index_heads} * config.index_head_dim + 4 * config.index_topk;
  const std::int64_t expert =
      hidden + 2 * 2 * config.moe_intermediate_size + config.moe_intermediate_size + 2 * hidden;
  const std::int64_t experts = normed + 4 * config.routed_experts + (config.experts_per_token + 1) * expert;
  const std::int64_t columns = std::int64_t{config.engram.max_ngram_size - 1} * config.engram.heads;
  const std::int64_t engram = config.engram.layer_ids.empty()
                                  ? 0
                                  : 2 * columns * config.engram.head_dim + 2 * (config.hc_mult + 1) * hidden;
  return std::max({attention, experts, engram});
}

std::int64_t activation_bytes(const ModelConfig& config, std::int64_t rows) {
  const std::int64_t streams = 2 * std::int64_t{2} * config.hc_mult * config.hidden_size;
  return times(rows, streams + phase_bytes(config));
}

std::int64_t score_bytes(const ModelConfig& config, const Load& load) {
  int ratio = 0;
  for (const int layer : config.index_source_layer_ids) {
    const int own = config.compress_ratios[static_cast<std::size_t>(layer)];
    ratio = ratio == 0 ? own : std::min(ratio, own);
  }
  if (ratio == 0) return 0;
  return times(std::min(load.batch_tokens, kScoreRows) * std::int64_t{sizeof(float)}, load.context / ratio);
}

// Largest n in [0, high] for which `fits`, which holds for no n above one for which it does not.
template <class Fits>
std::int64_t largest(std::int64_t high, const Fits& fits) {
  std::int64_t low = 0;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

std::vector<WeightPart> weight_parts(const ModelConfig& config) {
  std::vector<WeightPart> parts = empty_parts();
  for (const TensorInfo& info : checkpoint::expected_tensors(config)) {
    WeightPart& part = parts[part_of(info.name)];
    ++part.tensors;
    part.parameters += parameters(info);
    part.bytes += info.bytes;
  }
  return parts;
}

std::int64_t MemoryAccount::sum() const {
  std::int64_t total = 0;
  for (const MemoryTerm& term : terms) total = plus(total, term.bytes);
  return total;
}

const MemoryTerm& MemoryAccount::largest() const {
  return *std::ranges::max_element(terms, {}, &MemoryTerm::bytes);
}

MemoryPlanner::MemoryPlanner(ModelConfig config)
    : config_(std::move(config)), parts_(weight_parts(config_)) {}

// Bytes of a part of the weights on each of `gpus`. An expert is kept whole.
std::int64_t MemoryPlanner::share(std::size_t part, std::int64_t gpus) const {
  const std::int64_t bytes = parts_[part].bytes;
  if (parts_[part].placement == Placement::everywhere || bytes == 0) return bytes;
  if (parts_[part].placement == Placement::table) return divide_up(bytes, gpus);
  const std::int64_t experts = part == kDraftExperts ? config_.draft.experts : config_.routed_experts;
  return bytes / experts * divide_up(experts, gpus);
}

// Weights on one device; `tables` tells whether the Engram tables are among them.
void MemoryPlanner::add_weights(std::int64_t gpus, bool tables, std::vector<MemoryTerm>& terms) const {
  std::int64_t others = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const std::int64_t bytes = share(i, gpus);
    if (parts_[i].placement == Placement::everywhere) {
      others += bytes;
    } else if (bytes > 0 && (tables || parts_[i].placement != Placement::table)) {
      terms.push_back({parts_[i].name, bytes});
    }
  }
  terms.push_back({"other weights", others});
}

void MemoryPlanner::add_work(std::int64_t sequences, const Load& load, std::vector<MemoryTerm>& terms) const {
  const PageLayout page = page_layout(config_);
  const SlotLayout slot = slot_layout(config_, default_backtracking(config_));
  const std::int64_t pages = times(sequences, divide_up(load.context, page.tokens));
  const std::int64_t logit_row = config_.vocab_size * std::int64_t{sizeof(float)};
  terms.push_back({"cache pages", times(pages, page.stride)});
  terms.push_back({"state slots", times(sequences, slot.stride)});
  terms.push_back({"activations", activation_bytes(config_, load.batch_tokens)});
  terms.push_back({"index scores", score_bytes(config_, load)});
  terms.push_back({"logits", times(times(sequences, 1 + config_.draft.block_size), logit_row)});
}

MemoryPlan MemoryPlanner::plan(const DeviceSet& devices, const Load& load) const {
  const std::int64_t gpus = std::max(1, devices.gpus);
  const bool host_tables = devices.gpus > 0 && !devices.engram_on_device;
  MemoryPlan plan;
  plan.device.available = devices.gpus > 0 ? std::optional(devices.gpu_memory) : devices.host_memory;
  add_weights(gpus, !host_tables, plan.device.terms);
  add_work(divide_up(load.sequences, gpus), load, plan.device.terms);
  plan.device.terms.push_back({"reserve", devices.reserve});
  if (devices.gpus > 0) {
    plan.host = MemoryAccount{.terms = {}, .available = devices.host_memory};
    if (host_tables) plan.host->terms.push_back({parts_[kTables].name, parts_[kTables].bytes});
    plan.host->terms.push_back({"reserve", devices.reserve});
  }
  return plan;
}

std::int64_t MemoryPlanner::most_sequences(const DeviceSet& devices, std::int64_t context,
                                           std::int64_t batch_tokens) const {
  return largest(kMostSequences, [&](std::int64_t n) {
    return plan(devices, {context, n, batch_tokens}).fits();
  });
}

std::int64_t MemoryPlanner::longest_context(const DeviceSet& devices, std::int64_t sequences,
                                            std::int64_t batch_tokens) const {
  const std::int64_t most = divide_up(config_.max_position_embeddings, kPageTokens);
  const std::int64_t pages = largest(most, [&](std::int64_t n) {
    return plan(devices, {n * kPageTokens, sequences, batch_tokens}).fits();
  });
  return std::min(pages * kPageTokens, config_.max_position_embeddings);
}

}  // namespace thalweg::model
