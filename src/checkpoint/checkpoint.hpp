// A checkpoint directory: configuration, shards kept mapped, and the typed weights that point into them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/config.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/weights.hpp"

namespace thalweg::checkpoint {

struct TensorInfo {
  std::string name;  ///< without an optional "model." prefix
  DType dtype;
  std::vector<std::int64_t> shape;
  std::int64_t bytes;
};

/// Called while loading, from the calling thread: bytes checked so far and in all.
using LoadProgress = std::function<void(std::int64_t done, std::int64_t total)>;

struct LoadOptions {
  bool check_codes = true;  ///< read every FP8/scale byte and refuse NaN codes
  std::size_t threads = 0;  ///< 0: all processors
  LoadProgress progress;
};

/// Owns the mappings. Weights point into the mapped files (or into aligned copies of the few tensors that lie
/// misaligned in their file) and stay valid as long as this object lives, also after a move. Thread-safe to
/// read.
class Checkpoint {
 public:
  /// Reads `directory` and performs all checks of the checkpoint specification, section 7, before any use.
  /// Throws InputError naming file, tensor or field, what was expected and what was found.
  static Checkpoint load(const std::filesystem::path& directory, const LoadOptions& options = {});
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;

  const std::filesystem::path& directory() const;
  const ModelConfig& config() const;
  const Weights& weights() const;
  const std::vector<TensorInfo>& tensors() const;  ///< in the order of `expected_tensors`
  std::int64_t total_bytes() const;

 private:
  struct State;
  explicit Checkpoint(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The complete tensor table a configuration asks for (names, dtypes, shapes), in a fixed order. Needs no
/// files.
std::vector<TensorInfo> expected_tensors(const ModelConfig& config);

}  // namespace thalweg::checkpoint
