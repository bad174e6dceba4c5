#include "engine/loaded_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <span>
#include <utility>
#include <vector>

#include "base/mapped_file.hpp"
#include "cache/prefix_key.hpp"
#include "text/engram_vocabulary.hpp"

namespace thalweg::engine {
namespace {

// A tokenizer that makes ids the embedding does not have would index out of it.
void check_vocabulary(const text::Tokenizer& tokenizer, const checkpoint::ModelConfig& config,
                      const std::filesystem::path& file) {
  if (tokenizer.vocab_size() <= config.vocab_size) return;
  throw InputError(file.string(),
                   "token ids below " + std::to_string(config.vocab_size) + " (vocab_size of config.json)",
                   "id " + std::to_string(tokenizer.vocab_size() - 1));
}

// The length field and the header of a safetensors file.
std::string header_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::uint64_t length = 0;
  in.read(reinterpret_cast<char*>(&length), sizeof length);
  std::string header(std::min<std::uint64_t>(length, std::uint64_t{100} << 20), '\0');
  in.read(header.data(), static_cast<std::streamsize>(header.size()));
  return header;
}

}  // namespace

std::string LoadedModel::digest() const {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::string names =
      read_text_file(directory / "config.json") + read_text_file(directory / "tokenizer.json");
  for (const auto& file : files) {
    names += fmt::format("{} {} {}\n", file.filename().string(), std::filesystem::file_size(file),
                         std::filesystem::last_write_time(file).time_since_epoch().count());
    names += header_of(file);
  }
  return cache::to_hex(cache::xxh3_128(std::as_bytes(std::span(names)), 0));
}

std::unique_ptr<LoadedModel> load_model(const std::filesystem::path& directory,
                                        const checkpoint::LoadOptions& options) {
  const checkpoint::ModelConfig config = checkpoint::load_config(directory / "config.json");
  text::Tokenizer tokenizer = text::Tokenizer::load(directory / "tokenizer.json");
  check_vocabulary(tokenizer, config, directory / "tokenizer.json");
  std::vector<std::int32_t> engram;
  if (!config.engram.layer_ids.empty()) engram = text::engram_vocabulary(tokenizer);
  checkpoint::Checkpoint checkpoint = checkpoint::Checkpoint::load(directory, options);
  return std::make_unique<LoadedModel>(
      LoadedModel{directory, std::move(tokenizer), model::Model(std::move(checkpoint), std::move(engram))});
}

}  // namespace thalweg::engine
