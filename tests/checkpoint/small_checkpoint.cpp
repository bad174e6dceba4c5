#include "checkpoint/small_checkpoint.hpp"

#include <fstream>
#include <iterator>
#include <span>

#include "checkpoint/checkpoint.hpp"

namespace thalweg::checkpoint::testing {
namespace {

constexpr const char* kConfig = R"({
  "architectures": ["DeepseekV41ForCausalLM"], "model_type": "deepseek_v41", "dtype": "bfloat16",
  "tokenizer_compatibility": "native",
  "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "image_token_id": 15,
  "quantization_config": {"quant_method": "fp8", "expert_dtype": "fp4", "activation_scheme": "dynamic",
    "weight_block_size": [32, 32], "scale_fmt": "ue8m0"},
  "text_config": {
    "model_type": "deepseek_v41_text", "vocab_size": 16, "hidden_size": 32, "num_hidden_layers": 3,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32, "qk_rope_head_dim": 16, "q_lora_rank": 32,
    "o_lora_rank": 32, "o_groups": 2, "moe_intermediate_size": 32, "n_routed_experts": 2, "n_shared_experts": 1,
    "num_experts_per_tok": 1, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc", "norm_topk_prob": true,
    "routed_scaling_factor": 1.5, "hidden_act": "silu", "swiglu_limit": 10.0, "rms_norm_eps": 1e-20,
    "attention_bias": false, "attention_dropout": 0.0, "tie_word_embeddings": false, "use_cache": true,
    "sliding_window": 8, "compress_ratios": [0, 2, 1, 0], "compress_rope_theta": 160000.0, "rope_theta": 10000.0,
    "rope_scaling": {"rope_type": "yarn", "factor": 4, "beta_fast": 32, "beta_slow": 1,
      "original_max_position_embeddings": 64},
    "max_position_embeddings": 256, "kv_source_layer_ids": [1, 2], "index_source_layer_ids": [1, 2],
    "index_n_heads": 2, "index_head_dim": 32, "index_topk": 8, "candidate_source_layer_id": 2,
    "candidate_topk_blocks": 4, "candidate_block_size": 2, "hc_mult": 2, "hc_sinkhorn_iters": 4, "hc_eps": 1e-6,
    "engram_layer_ids": [0], "engram_num_embeddings": [24], "engram_max_ngram_size": 3, "engram_n_heads": 1,
    "engram_head_dim": 32, "engram_vocab_size": 11, "engram_compressed_vocab_size": 12, "engram_pad_token_id": 2,
    "num_nextn_predict_layers": 1, "dspark_block_size": 3, "dspark_noise_token_id": 14,
    "dspark_target_layer_ids": [1, 2], "dspark_markov_rank": 4, "dspark_n_routed_experts": 2,
    "dspark_num_experts_per_tok": 1},
  "vision_config": {"model_type": "deepseek_v41_vision", "num_hidden_layers": 1, "hidden_size": 8,
    "num_attention_heads": 2, "intermediate_size": 8, "patch_size": 2, "downsample_ratio": 2, "max_image_tokens": 16,
    "min_pixels": 16, "max_wh_ratio": null, "rope_theta": 10000.0}
})";

}  // namespace

Json small_config() {
  return parse_json(kConfig, "small config");
}

SmallCheckpoint::SmallCheckpoint() : config(small_config()), index(Json::object()) {
  std::int64_t total = 0;
  std::size_t count = 0;
  for (const TensorInfo& info : expected_tensors(parse_config(config, "small config"))) {
    const std::string shard = count++ % 2 == 0 ? "a.safetensors" : "b.safetensors";
    // 1 is a valid code of every type and NaN in none.
    shards[shard][info.name] = {info.dtype, info.shape,
                                std::vector<std::byte>(static_cast<std::size_t>(info.bytes), std::byte{1})};
    index["weight_map"][info.name] = shard;
    total += info.bytes;
  }
  index["metadata"]["total_size"] = total;
}

void SmallCheckpoint::write(const std::filesystem::path& directory) const {
  write_file(directory / "config.json", config.dump());
  write_file(directory / "model.safetensors.index.json", index.dump());
  for (const auto& [name, tensors] : shards) {
    std::vector<StoredTensor> stored;
    for (const auto& [tensor_name, tensor] : tensors) {
      stored.push_back({tensor_name, tensor.dtype, tensor.shape, tensor.bytes});
    }
    write_safetensors(directory / name, stored);
  }
}

void write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace thalweg::checkpoint::testing
