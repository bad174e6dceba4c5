#include "checkpoint/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "base/thread_pool.hpp"
#include "checkpoint/code_check.hpp"
#include "checkpoint/shards.hpp"
#include "checkpoint/tensor_walk.hpp"

namespace thalweg::checkpoint {
namespace {

// Only lists the tensors.
class TableSource final : public TensorSource {
 public:
  const std::byte* tensor(const std::string& name, DType dtype, std::vector<std::int64_t> shape) override {
    std::int64_t bytes = dtype_size(dtype);
    for (const std::int64_t n : shape) bytes *= n;
    table.push_back({name, dtype, std::move(shape), bytes});
    return nullptr;
  }

  std::vector<TensorInfo> table;
};

// Answers with addresses in the mapped shards. Tensors that lie misaligned for their type are copied.
class ShardSource final : public TensorSource {
 public:
  explicit ShardSource(const Shards& shards) : shards_(shards) {}

  const std::byte* tensor(const std::string& name, DType dtype, std::vector<std::int64_t>) override {
    const auto bytes = shards_.find(name).tensor->bytes;
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % static_cast<std::size_t>(dtype_size(dtype)) == 0) {
      return bytes.data();
    }
    auto& copy =
        copies.emplace_back(std::make_unique<std::byte[]>(bytes.size()));  // aligned as operator new aligns
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    return copy.get();
  }

  std::vector<std::unique_ptr<std::byte[]>> copies;

 private:
  const Shards& shards_;
};

// The shards must hold exactly the tensors of the table, with its types and shapes.
void check_table(const std::vector<TensorInfo>& table, const Shards& shards) {
  std::unordered_set<std::string_view> names;
  for (const TensorInfo& info : table) {
    names.insert(info.name);
    const auto [tensor, file] = shards.find(info.name);
    if (tensor == nullptr) {
      throw InputError(fmt::format("{}: tensor \"{}\"", shards.listing().string(), info.name),
                       fmt::format("{} {}", dtype_name(info.dtype), shape_text(info.shape)),
                       "no such tensor");
    }
    if (tensor->dtype != info.dtype || tensor->shape != info.shape) {
      throw InputError(fmt::format("{}: tensor \"{}\"", file->path().string(), tensor->name),
                       fmt::format("{} {}", dtype_name(info.dtype), shape_text(info.shape)),
                       fmt::format("{} {}", dtype_name(tensor->dtype), shape_text(tensor->shape)));
    }
  }
  if (names.size() == shards.size()) return;
  std::string unexpected;  // the first by name, so that the message does not depend on a hash
  for (const auto& [name, located] : shards.tensors()) {
    if (!names.contains(name) && (unexpected.empty() || name < unexpected)) unexpected = name;
  }
  const auto [tensor, file] = shards.find(unexpected);
  throw InputError(fmt::format("{}: tensor \"{}\"", file->path().string(), tensor->name),
                   "unexpected: this configuration has no use for it");
}

void check_all_codes(const std::vector<TensorInfo>& table, const Shards& shards, const LoadOptions& options) {
  std::vector<CodedTensor> coded;
  std::int64_t total = 0;
  for (const TensorInfo& info : table) {
    if (info.dtype != DType::e4m3 && info.dtype != DType::e8m0) continue;
    const auto [tensor, file] = shards.find(info.name);
    coded.push_back({fmt::format("{}: tensor \"{}\"", file->path().string(), tensor->name), tensor});
    total += info.bytes;
  }
  ThreadPool pool(options.threads);
  check_codes(coded, pool, [&](std::int64_t done) {
    if (options.progress) options.progress(done, total);
  });
}

}  // namespace

struct Checkpoint::State {
  State(std::filesystem::path path, ModelConfig model)
      : directory(std::move(path)), config(std::move(model)), shards(directory) {}

  std::filesystem::path directory;
  ModelConfig config;
  Shards shards;
  std::vector<TensorInfo> table;
  std::vector<std::unique_ptr<std::byte[]>> copies;
  Weights weights;
  std::int64_t total_bytes = 0;
};

Checkpoint Checkpoint::load(const std::filesystem::path& directory, const LoadOptions& options) {
  if (!std::filesystem::is_directory(directory)) throw InputError(directory.string(), "not a directory");
  auto state = std::make_unique<State>(directory, load_config(directory / "config.json"));
  state->table = expected_tensors(state->config);
  check_table(state->table, state->shards);
  if (options.check_codes) check_all_codes(state->table, state->shards, options);
  ShardSource source(state->shards);
  state->weights = walk_tensors(state->config, source);
  state->copies = std::move(source.copies);
  for (const TensorInfo& info : state->table) state->total_bytes += info.bytes;
  return Checkpoint(std::move(state));
}

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;

const std::filesystem::path& Checkpoint::directory() const {
  return state_->directory;
}
const ModelConfig& Checkpoint::config() const {
  return state_->config;
}
const Weights& Checkpoint::weights() const {
  return state_->weights;
}
const std::vector<TensorInfo>& Checkpoint::tensors() const {
  return state_->table;
}
std::int64_t Checkpoint::total_bytes() const {
  return state_->total_bytes;
}

std::vector<TensorInfo> expected_tensors(const ModelConfig& config) {
  TableSource source;
  walk_tensors(config, source);
  return std::move(source.table);
}

}  // namespace thalweg::checkpoint
