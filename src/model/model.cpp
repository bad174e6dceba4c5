#include "model/model.hpp"

#include <algorithm>
#include <utility>

namespace thalweg::model {
namespace {

// The backends work in groups of 32 values; released shapes are multiples of it.
void require_groups(const checkpoint::Checkpoint& checkpoint) {
  const auto& config = checkpoint.config();
  const std::pair<const char*, int> sizes[] = {
      {"hidden_size", config.hidden_size},
      {"head_dim", config.head_dim},
      {"q_lora_rank", config.q_lora_rank},
      {"o_lora_rank", config.o_lora_rank},
      {"moe_intermediate_size", config.moe_intermediate_size},
      {"index_head_dim", config.kv_source_layer_ids.empty() ? 32 : config.index_head_dim},
      {"engram_head_dim", config.engram.layer_ids.empty() ? 32 : config.engram.head_dim},
  };
  for (const auto& [name, value] : sizes) {
    if (value % 32 != 0) {
      throw InputError((checkpoint.directory() / "config.json").string() + ": text_config." + name,
                       "a multiple of 32", std::to_string(value));
    }
  }
}

void check_engram_vocabulary(const checkpoint::Checkpoint& checkpoint,
                             const std::vector<std::int32_t>& vocabulary) {
  const auto& config = checkpoint.config();
  const std::string subject = (checkpoint.directory() / "tokenizer.json").string();
  if (static_cast<int>(vocabulary.size()) > config.vocab_size) {
    throw InputError(subject,
                     "at most " + std::to_string(config.vocab_size) + " ids (vocab_size of config.json)",
                     std::to_string(vocabulary.size()));
  }
  if (config.engram.pad_token_id >= static_cast<int>(vocabulary.size())) {
    throw InputError(subject,
                     "a token with id engram_pad_token_id " + std::to_string(config.engram.pad_token_id),
                     std::to_string(vocabulary.size()) + " ids");
  }
  const std::int64_t classes =
      vocabulary.empty() ? 0 : std::int64_t{*std::max_element(vocabulary.begin(), vocabulary.end())} + 1;
  if (classes != config.engram.compressed_vocab_size) {
    throw InputError(subject,
                     "a vocabulary of " + std::to_string(config.engram.compressed_vocab_size) +
                         " compressed ids (engram_compressed_vocab_size of config.json)",
                     std::to_string(classes));
  }
}

}  // namespace

Model::Model(checkpoint::Checkpoint checkpoint, std::vector<std::int32_t> engram_vocabulary)
    : checkpoint_(std::move(checkpoint)), engram_vocabulary_(std::move(engram_vocabulary)) {
  require_groups(checkpoint_);
  const checkpoint::Weights& weights = checkpoint_.weights();
  for (const LayerPlan& plan : plan_layers(config())) layers_.push_back({plan, &weights.layers[plan.id]});
  if (weights.draft) {
    for (int stage = 0; stage < config().draft.layers; ++stage) {
      LayerPlan plan;
      plan.id = config().layers + stage;
      plan.decoder = true;
      draft_layers_.push_back({plan, &weights.draft->layers[stage]});
    }
  }
  border_ = first_decoder_layer(config());
  rope_ = rope_frequencies(config());
  if (config().engram.layer_ids.empty()) return;
  check_engram_vocabulary(checkpoint_, engram_vocabulary_);
  // Ids that the tokenizer does not know count as padding.
  const std::int32_t pad = engram_vocabulary_[config().engram.pad_token_id];
  engram_vocabulary_.resize(config().vocab_size, pad);
  engram_ = checkpoint::engram_hash(config().engram);
}

}  // namespace thalweg::model
