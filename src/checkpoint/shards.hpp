// The shard files of a checkpoint directory, and which tensor lies in which.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/safetensors.hpp"

namespace thalweg::checkpoint {

/// All shards of a checkpoint, mapped. Movable; thread-safe to read.
class Shards {
 public:
  struct Located {
    const StoredTensor* tensor;
    const SafetensorsFile* file;
  };

  /// Reads `model.safetensors.index.json` and the shards it names, or a single `model.safetensors`. Index and
  /// headers must list the same tensors in the same shards, and the index's total_size must be right. Throws
  /// InputError.
  explicit Shards(const std::filesystem::path& directory);

  /// The tensor called `name`, without an optional "model." in front. nullptr members if there is none.
  Located find(std::string_view name) const;
  std::size_t size() const { return tensors_.size(); }
  /// Name -> place, in no particular order.
  const std::unordered_map<std::string, Located>& tensors() const { return tensors_; }
  /// The index file, or the single file.
  const std::filesystem::path& listing() const { return listing_; }

 private:
  std::filesystem::path listing_;
  std::vector<SafetensorsFile> files_;
  std::unordered_map<std::string, Located> tensors_;
};

}  // namespace thalweg::checkpoint
