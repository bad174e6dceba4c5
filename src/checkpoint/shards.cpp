#include "checkpoint/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "base/json_members.hpp"
#include "base/mapped_file.hpp"

namespace thalweg::checkpoint {
namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";

struct Index {
  std::unordered_map<std::string, std::string> shard_of;  // by name without prefix
  std::vector<std::string> shards;                        // each once, sorted
  Json metadata;
};

std::string_view without_prefix(std::string_view name) {
  constexpr std::string_view kPrefix = "model.";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  return name;
}

bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Index read_index(const std::filesystem::path& path) {
  const std::string subject = path.string();
  Index index;
  bool has_map = false;
  const auto member = [&](std::string_view container, const std::string& name, Json value) {
    if (container.empty()) {
      if (name == "metadata") index.metadata = std::move(value);
      return;
    }
    const std::string where = fmt::format("{}: weight_map: \"{}\"", subject, name);
    if (!value.is_string() || !is_plain_file_name(value.get_ref<const std::string&>())) {
      throw InputError(where, "the name of a file beside the index", to_text(value));
    }
    has_map = true;
    index.shards.push_back(value.get<std::string>());
    if (!index.shard_of.emplace(without_prefix(name), index.shards.back()).second) {
      throw InputError(where, "listed twice, with and without \"model.\"");
    }
  };
  read_json_members(read_text_file(path), subject, "weight_map", member);
  if (!has_map) throw InputError(subject + ": weight_map", "tensor names with their shards", "none");
  std::ranges::sort(index.shards);
  index.shards.erase(std::unique(index.shards.begin(), index.shards.end()), index.shards.end());
  return index;
}

void check_total_size(const Index& index, std::int64_t payload, const std::string& subject) {
  if (index.metadata.is_null()) return;
  const std::string where = subject + ": metadata.total_size";
  if (!index.metadata.is_object())
    throw InputError(subject + ": metadata", "an object", to_text(index.metadata));
  const auto size = index.metadata.find("total_size");
  if (size != index.metadata.end() && *size != Json(payload)) {
    throw InputError(where, fmt::format("{}, the bytes of all tensors", payload), to_text(*size));
  }
}

}  // namespace

Shards::Shards(const std::filesystem::path& directory) : listing_(directory / kIndexName) {
  Index index;
  const bool indexed = std::filesystem::exists(listing_);
  if (indexed) {
    index = read_index(listing_);
  } else {
    listing_ = directory / kSingleName;
    if (!std::filesystem::exists(listing_)) {
      throw InputError(directory.string(), fmt::format("{} or {}", kIndexName, kSingleName), "neither");
    }
    index.shards.emplace_back(kSingleName);
  }
  files_.reserve(index.shards.size());  // `tensors_` points to its elements
  std::int64_t payload = 0;
  for (const std::string& shard : index.shards) {
    const SafetensorsFile& file = files_.emplace_back(directory / shard);
    for (const StoredTensor& tensor : file.tensors()) {
      const std::string where = fmt::format("{}: tensor \"{}\"", file.path().string(), tensor.name);
      const std::string name(without_prefix(tensor.name));
      if (const auto [other, added] = tensors_.emplace(name, Located{&tensor, &file}); !added) {
        throw InputError(where, "also in " + other->second.file->path().filename().string());
      }
      if (indexed) {
        const auto listed = index.shard_of.find(name);
        if (listed == index.shard_of.end())
          throw InputError(where, fmt::format("not listed in {}", kIndexName));
        if (listed->second != shard) {
          throw InputError(where, fmt::format("listed in {} as part of {}", kIndexName, listed->second));
        }
      }
      payload += static_cast<std::int64_t>(tensor.bytes.size());
    }
  }
  for (const auto& [name, shard] : index.shard_of) {
    if (!tensors_.contains(name)) {
      throw InputError(fmt::format("{}: tensor \"{}\"", (directory / shard).string(), name),
                       fmt::format("missing, although {} lists it there", kIndexName));
    }
  }
  check_total_size(index, payload, listing_.string());
}

Shards::Located Shards::find(std::string_view name) const {
  const auto found = tensors_.find(std::string(name));
  return found == tensors_.end() ? Located{nullptr, nullptr} : found->second;
}

}  // namespace thalweg::checkpoint
