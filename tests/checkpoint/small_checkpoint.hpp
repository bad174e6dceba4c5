// A checkpoint of a few kilobytes with every kind of tensor, made to be spoiled by tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "checkpoint/safetensors.hpp"

namespace thalweg::checkpoint::testing {

struct SmallTensor {
  DType dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

/// Three layers (ratios 0, 2, 1), one draft layer, one vision layer, Engram in layer 0. Valid as made;
/// `write` puts it into a directory as it is then. Two shards: even and odd tensors of the table.
struct SmallCheckpoint {
  SmallCheckpoint();

  void write(const std::filesystem::path& directory) const;

  Json config;
  std::map<std::string, std::map<std::string, SmallTensor>> shards;  ///< file name -> tensor name -> tensor
  Json index;
};

/// The configuration alone.
Json small_config();

void write_file(const std::filesystem::path& path, const std::string& content);
std::string read_file(const std::filesystem::path& path);

}  // namespace thalweg::checkpoint::testing
