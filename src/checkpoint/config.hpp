// `config.json` of a DeepSeek-V4.1 checkpoint as one validated value.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"

namespace thalweg::checkpoint {

/// YaRN parameters of the compressed layers' rotary embedding.
struct RopeScaling {
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  std::int64_t original_max_position_embeddings = 0;
};

/// Engram n-gram memory. Per layer: the row count of its table.
struct EngramConfig {
  std::vector<int> layer_ids;
  std::vector<std::int64_t> rows;  ///< engram_num_embeddings, one a layer
  int max_ngram_size = 0;          ///< n-gram orders 2..max
  int heads = 0;                   ///< hash heads per order
  int head_dim = 0;
  std::int64_t bucket_count = 0;  ///< engram_vocab_size: the primes are searched from here
  std::int64_t compressed_vocab_size = 0;
  int pad_token_id = 0;
};

/// DSpark draft model. `layers` == 0 means there is none.
struct DraftConfig {
  int layers = 0;  ///< num_nextn_predict_layers
  int block_size = 0;
  int noise_token_id = 0;
  std::vector<int> target_layer_ids;
  int markov_rank = 0;
  int experts = 0;
  int experts_per_token = 0;
};

struct VisionConfig {
  int layers = 0;  ///< 0: a checkpoint without a vision tower
  int hidden_size = 0;
  int heads = 0;
  int intermediate_size = 0;
  int patch_size = 0;
  int downsample_ratio = 0;
  int max_image_tokens = 0;
  std::int64_t min_pixels = 0;
  std::optional<double> max_wh_ratio;
  double rope_theta = 0;
};

/// Everything the engine needs to know of a checkpoint besides its weights. Field names follow `config.json`
/// where they exist there (model specification, section 1). Always valid: made only by `parse_config`.
struct ModelConfig {
  int vocab_size = 0;
  int hidden_size = 0;
  int layers = 0;
  int heads = 0;
  int head_dim = 0;
  int rope_head_dim = 0;
  int q_lora_rank = 0;
  int o_lora_rank = 0;
  int o_groups = 0;
  int moe_intermediate_size = 0;
  int routed_experts = 0;
  int experts_per_token = 0;
  double routed_scaling_factor = 1;
  double swiglu_limit = 0;
  double rms_norm_eps = 0;
  int sliding_window = 0;
  std::vector<int> compress_ratios;  ///< layers + draft.layers entries of 0, 1 or 2
  double rope_theta = 0;
  double compress_rope_theta = 0;
  RopeScaling rope_scaling;
  std::int64_t max_position_embeddings = 0;
  std::vector<int> kv_source_layer_ids;
  std::vector<int> index_source_layer_ids;
  int index_heads = 0;
  int index_head_dim = 0;
  int index_topk = 0;
  int candidate_source_layer_id = -1;  ///< -1: no candidate filter
  int candidate_topk_blocks = 0;
  int candidate_block_size = 0;
  int hc_mult = 0;
  int hc_sinkhorn_iters = 0;
  double hc_eps = 0;
  EngramConfig engram;
  DraftConfig draft;
  VisionConfig vision;
  int bos_token_id = 0;
  int eos_token_id = 0;
  int pad_token_id = 0;
  int image_token_id = -1;
  bool native_tokenizer =
      false;  ///< "tokenizer_compatibility": "native": a tokenizer other than the released one
};

/// Checks every rule of the specification. Throws InputError "<subject>: <field>: expected ..., found ..."
/// for the first violation; unknown keys that change the computation are refused by name.
ModelConfig parse_config(const Json& root, const std::string& subject);

/// Parses the text of a config.json and checks it. Malformed text and repeated members are named by their
/// place, too.
ModelConfig parse_config_text(std::string_view text, const std::string& subject);

/// Reads and parses `file` (a config.json). Throws InputError naming file and field.
ModelConfig load_config(const std::filesystem::path& file);

}  // namespace thalweg::checkpoint
