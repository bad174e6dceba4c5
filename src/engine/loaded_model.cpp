#include "engine/loaded_model.hpp"

#include <utility>

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

}  // namespace

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
