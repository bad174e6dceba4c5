// How much memory a model takes, part by part, and what fits where. Needs the configuration alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/config.hpp"

namespace thalweg::model {

/// How a part of the weights is placed on several GPUs.
enum class Placement {
  everywhere,  ///< a copy on each
  spread,      ///< whole experts, spread evenly
  table,       ///< Engram tables: in host memory, or their rows spread evenly
};

/// A group of tensors (checkpoint specification, section 6). `parameters` counts values, `bytes` scales too.
struct WeightPart {
  std::string name;
  Placement placement = Placement::everywhere;
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;
};

/// All tensors of the checkpoint, each in one part.
std::vector<WeightPart> weight_parts(const checkpoint::ModelConfig& config);

/// Where the model is to run. Sizes in bytes.
struct DeviceSet {
  int gpus = 0;                             ///< 0: the host alone
  std::int64_t gpu_memory = 0;              ///< of each
  std::optional<std::int64_t> host_memory;  ///< unknown: not judged (with GPUs); needed without
  bool engram_on_device = false;            ///< Engram tables in GPU memory
  std::int64_t reserve = 0;                 ///< kept free on each device: driver, libraries, communication
};

/// What is to run at once.
struct Load {
  std::int64_t context = 0;       ///< tokens a sequence
  std::int64_t sequences = 0;     ///< over all devices, spread evenly
  std::int64_t batch_tokens = 0;  ///< rows a device computes in one step
};

struct MemoryTerm {
  std::string name;
  std::int64_t bytes = 0;
};

/// The account of one memory: its terms, their sum, and what there is.
struct MemoryAccount {
  std::vector<MemoryTerm> terms;
  std::optional<std::int64_t> available;  ///< nothing: unknown

  std::int64_t sum() const;
  const MemoryTerm& largest() const;  ///< `terms` must not be empty
  bool fits() const { return !available || sum() <= *available; }
};

/// `device` is one of the GPUs (the fullest), or the host if there are none; `host` is the host beside GPUs.
struct MemoryPlan {
  MemoryAccount device;
  std::optional<MemoryAccount> host;

  bool fits() const { return device.fits() && (!host || host->fits()); }
  /// The account that does not fit, else the device's.
  const MemoryAccount& tightest() const { return !device.fits() || !host || host->fits() ? device : *host; }
};

/// Plans for one model. Weights count by their files' sizes; cache pages and slots by `cache_layout.hpp` in
/// the published formats; activations as an upper bound: both copies of the residual streams and the largest
/// of the attention, expert and Engram phases for all rows at once, index scores for 128 rows at a time. Sums
/// beyond 63 bits saturate.
class MemoryPlanner {
 public:
  explicit MemoryPlanner(checkpoint::ModelConfig config);

  const checkpoint::ModelConfig& config() const { return config_; }
  const std::vector<WeightPart>& parts() const { return parts_; }

  /// The account of `load` on `devices`.
  MemoryPlan plan(const DeviceSet& devices, const Load& load) const;

  /// Most sequences of `context` tokens that fit; 0 if none does. At most 2^20.
  std::int64_t most_sequences(const DeviceSet& devices, std::int64_t context,
                              std::int64_t batch_tokens) const;

  /// Longest context, in whole pages and at most max_position_embeddings, at which `sequences` fit; 0 if none
  /// does.
  std::int64_t longest_context(const DeviceSet& devices, std::int64_t sequences,
                               std::int64_t batch_tokens) const;

 private:
  std::int64_t share(std::size_t part, std::int64_t gpus) const;
  void add_weights(std::int64_t gpus, bool tables, std::vector<MemoryTerm>& terms) const;
  void add_work(std::int64_t sequences, const Load& load, std::vector<MemoryTerm>& terms) const;

  checkpoint::ModelConfig config_;
  std::vector<WeightPart> parts_;
};

}  // namespace thalweg::model
