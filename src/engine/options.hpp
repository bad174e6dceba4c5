// Everything that can be chosen about an engine, and the sizes that follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "backend/backend.hpp"
#include "cache/prefix_key.hpp"
#include "checkpoint/config.hpp"
#include "engine/speculation/policy.hpp"
#include "model/precision.hpp"

namespace thalweg::engine {

/// Sizes of 0 are derived: see each.
struct EngineOptions {
  backend::Device device = backend::Device::cpu;
  model::Precision precision = model::Precision::reference;
  std::size_t threads = 0;  ///< 0: all processors
  cache::ReuseMode mode = cache::ReuseMode::exact;
  std::int32_t replay_keep = 0;     ///< 0: window + 2 x backtracking
  std::int32_t sequences = 16;      ///< running at once
  std::int32_t batch_tokens = 512;  ///< rows of a step
  std::int64_t context = 0;         ///< tokens of a sequence at most; 0: what the model and the cache allow
  std::int64_t cache_tokens = 0;    ///< tokens of global KV on the device; 0: 64 Ki
  /// Window snapshots kept on the device; -1: two for each sequence. With fewer, the oldest must leave the
  /// device, which makes planning wait for the running step.
  std::int32_t snapshots = -1;
  std::int32_t snapshot_every = 512;                      ///< tokens between the snapshots of a prompt
  std::size_t host_cache_bytes = std::size_t{256} << 20;  ///< 0: no cache in host memory
  std::filesystem::path disk_cache;                       ///< empty: none
  std::size_t disk_cache_bytes = std::size_t{1} << 30;
  SpeculationOptions speculation;    ///< anything but off: steps are planned one after another
  std::filesystem::path step_costs;  ///< keeps the step-cost curves over restarts; empty: measured at start
  bool asynchronous = true;          ///< plan the next step while the device computes this one
};

/// What the options amount to for a model.
struct EngineSizes {
  std::int64_t blocks = 0;   ///< of global KV, the reserved one not counted
  std::int64_t slots = 0;    ///< of window state, the reserved one not counted
  std::int64_t context = 0;  ///< tokens of a sequence at most
  std::int64_t replay_keep = 0;
};

/// Throws UsageError naming the option that is out of range or does not go with the others.
EngineSizes sizes_of(const EngineOptions& options, const checkpoint::ModelConfig& config);

}  // namespace thalweg::engine
