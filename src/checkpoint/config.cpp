#include "checkpoint/config.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/json_members.hpp"
#include "base/mapped_file.hpp"
#include "checkpoint/config_reader.hpp"
#include "checkpoint/config_rules.hpp"

namespace thalweg::checkpoint {
namespace {

// Far above any model, low enough that no tensor and no sum of tensors overflows 63 bits (see check_sizes
// too).
constexpr int kMostLayers = 1024;
constexpr int kLargestSize = 1 << 17;
constexpr int kLargestVocabulary = 1 << 27;
constexpr int kLargestInt = std::numeric_limits<int>::max();

void read_quantization(ConfigReader quantization) {
  quantization.require("quant_method", "fp8");
  quantization.require("expert_dtype", "fp4");
  quantization.require("activation_scheme", "dynamic");
  quantization.require("weight_block_size", Json::array({32, 32}));
  quantization.require("scale_fmt", "ue8m0");
  quantization.allow("fmt", "e4m3");
  quantization.finish();
}

void read_attention(ConfigReader& text, ModelConfig& config) {
  config.heads = text.small("num_attention_heads", 1, kLargestSize);
  text.require("num_key_value_heads", 1);
  config.head_dim = text.small("head_dim", 1, kLargestSize);
  config.rope_head_dim = text.small("qk_rope_head_dim", 1, kLargestSize);
  config.q_lora_rank = text.small("q_lora_rank", 1, kLargestSize);
  config.o_lora_rank = text.small("o_lora_rank", 1, kLargestSize);
  config.o_groups = text.small("o_groups", 1, kLargestSize);
  config.sliding_window = text.small("sliding_window", 1, kLargestSize);
  config.rope_theta = text.positive("rope_theta");
  config.compress_rope_theta = text.positive("compress_rope_theta");
  config.max_position_embeddings = text.integer("max_position_embeddings", 1, kLargestInt);
  text.allow("attention_bias", false);
  text.allow("attention_dropout", 0);
  text.allow("use_fp4_sparse_kv", true);

  ConfigReader scaling = text.section("rope_scaling");
  if (scaling.has("type")) {
    scaling.require("type", "yarn");
    scaling.allow("rope_type", "yarn");
  } else {
    scaling.require("rope_type", "yarn");
  }
  config.rope_scaling.factor = scaling.positive("factor");
  config.rope_scaling.beta_fast = scaling.positive("beta_fast");
  config.rope_scaling.beta_slow = scaling.positive("beta_slow");
  config.rope_scaling.original_max_position_embeddings =
      scaling.integer("original_max_position_embeddings", 1, kLargestInt);
  scaling.finish();
}

void read_sources(ConfigReader& text, ModelConfig& config) {
  config.compress_ratios = text.small_integers("compress_ratios", 0, 2);
  config.kv_source_layer_ids = text.small_integers("kv_source_layer_ids", 0, config.layers - 1);
  config.index_source_layer_ids = text.small_integers("index_source_layer_ids", 0, config.layers - 1);
  text.allow("index_k_source_layer_ids", config.kv_source_layer_ids);
  config.index_heads = text.small("index_n_heads", 1, kLargestSize);
  config.index_head_dim = text.small("index_head_dim", 1, kLargestSize);
  config.index_topk = text.small("index_topk", 1, kLargestSize);
  if (text.has("candidate_source_layer_id")) {
    config.candidate_source_layer_id = text.small("candidate_source_layer_id", -1, config.layers - 1);
  } else {
    text.ignore("candidate_source_layer_id");
  }
  if (config.candidate_source_layer_id >= 0) {
    config.candidate_topk_blocks = text.small("candidate_topk_blocks", 1, 4096);
    config.candidate_block_size = text.small("candidate_block_size", 1, 4096);
  } else {
    text.ignore("candidate_topk_blocks");
    text.ignore("candidate_block_size");
  }
}

void read_experts(ConfigReader& text, ModelConfig& config) {
  config.moe_intermediate_size = text.small("moe_intermediate_size", 1, kLargestSize);
  config.routed_experts = text.small("n_routed_experts", 1, kLargestSize);
  text.require("n_shared_experts", 1);
  config.experts_per_token = text.small("num_experts_per_tok", 1, kLargestSize);
  text.require("scoring_func", "sqrtsoftplus");
  text.require("topk_method", "noaux_tc");
  text.require("norm_topk_prob", true);
  text.require("hidden_act", "silu");
  text.allow("gate_temp", 1);
  config.routed_scaling_factor = text.positive("routed_scaling_factor");
  config.swiglu_limit = text.positive("swiglu_limit");
}

void read_mixing(ConfigReader& text, ModelConfig& config) {
  config.hc_mult = text.small("hc_mult", 1, 16);
  config.hc_sinkhorn_iters = text.small("hc_sinkhorn_iters", 1, 1000);
  config.hc_eps = text.positive("hc_eps");
  config.rms_norm_eps = text.positive("rms_norm_eps");
  text.allow("hc_shifted", true);
}

void read_engram(ConfigReader& text, ModelConfig& config) {
  EngramConfig& engram = config.engram;
  engram.layer_ids = text.small_integers("engram_layer_ids", 0, config.layers - 1);
  engram.rows = text.integers("engram_num_embeddings", 1, std::int64_t{1} << 48);
  if (engram.layer_ids.empty()) {
    for (const char* name : {"engram_max_ngram_size", "engram_n_heads", "engram_head_dim",
                             "engram_vocab_size", "engram_compressed_vocab_size", "engram_pad_token_id"}) {
      text.ignore(name);
    }
    return;
  }
  engram.max_ngram_size = text.small("engram_max_ngram_size", 2, 64);
  engram.heads = text.small("engram_n_heads", 1, 1024);
  engram.head_dim = text.small("engram_head_dim", 1, 1 << 16);
  engram.bucket_count = text.integer("engram_vocab_size", 1, kLargestInt);
  engram.compressed_vocab_size = text.integer("engram_compressed_vocab_size", 1, config.vocab_size);
  engram.pad_token_id = text.small("engram_pad_token_id", 0, config.vocab_size - 1);
}

void read_draft(ConfigReader& text, ModelConfig& config) {
  DraftConfig& draft = config.draft;
  draft.layers = text.small("num_nextn_predict_layers", 0, kMostLayers);
  text.allow("dspark_target_attn_input", true);
  if (draft.layers == 0) {
    for (const char* name : {"dspark_block_size", "dspark_noise_token_id", "dspark_target_layer_ids",
                             "dspark_markov_rank", "dspark_n_routed_experts", "dspark_num_experts_per_tok"}) {
      text.ignore(name);
    }
    return;
  }
  draft.block_size = text.small("dspark_block_size", 1, 1024);
  draft.noise_token_id = text.small("dspark_noise_token_id", 0, config.vocab_size - 1);
  draft.target_layer_ids = text.small_integers("dspark_target_layer_ids", 0, config.layers - 1);
  if (draft.target_layer_ids.empty()) text.fail("dspark_target_layer_ids", "at least one layer id", "none");
  draft.markov_rank = text.small("dspark_markov_rank", 1, kLargestSize);
  draft.experts = text.small("dspark_n_routed_experts", 1, kLargestSize);
  draft.experts_per_token = text.small("dspark_num_experts_per_tok", 1, kLargestSize);
}

void read_text(ConfigReader& text, ModelConfig& config) {
  text.allow("model_type", "deepseek_v41_text");
  text.allow("dtype", "bfloat16");
  text.allow("torch_dtype", "bfloat16");
  text.allow("tie_word_embeddings", false);
  text.ignore("initializer_range");
  text.ignore("use_cache");
  config.hidden_size = text.small("hidden_size", 1, kLargestSize);
  config.layers = text.small("num_hidden_layers", 1, kMostLayers);
  read_attention(text, config);
  read_sources(text, config);
  read_experts(text, config);
  read_mixing(text, config);
  read_engram(text, config);
  read_draft(text, config);
  text.allow("bos_token_id", config.bos_token_id);
  text.allow("eos_token_id", config.eos_token_id);
  text.allow("pad_token_id", config.pad_token_id);
  text.finish();
  check_sizes(config, text);
  check_layer_schedule(config, text);
  check_engram(config, text);
}

void read_vision(ConfigReader section, VisionConfig& vision) {
  section.allow("model_type", "deepseek_v41_vision");
  section.allow("dtype", "bfloat16");
  vision.layers = section.small("num_hidden_layers", 0, kMostLayers);
  if (vision.layers == 0) return;
  vision.hidden_size = section.small("hidden_size", 1, kLargestSize);
  vision.heads = section.small("num_attention_heads", 1, kLargestSize);
  vision.intermediate_size = section.small("intermediate_size", 1, kLargestSize);
  vision.patch_size = section.small("patch_size", 1, 1024);
  vision.downsample_ratio = section.small("downsample_ratio", 1, 64);
  vision.max_image_tokens = section.small("max_image_tokens", 4, kLargestSize);
  vision.min_pixels = section.integer("min_pixels", 1, kLargestInt);
  vision.rope_theta = section.positive("rope_theta");
  if (section.has("max_wh_ratio")) {
    vision.max_wh_ratio = section.positive("max_wh_ratio");
  } else {
    section.ignore("max_wh_ratio");
  }
  section.finish();
  if (vision.hidden_size % vision.heads != 0 || vision.hidden_size / vision.heads % 4 != 0) {
    section.fail("hidden_size", fmt::format("num_attention_heads, {}, times a multiple of 4", vision.heads),
                 fmt::format("{}", vision.hidden_size));
  }
}

}  // namespace

ModelConfig parse_config(const Json& json, const std::string& subject) {
  ConfigReader root(json, subject, "");
  ModelConfig config;
  root.require("architectures", Json::array({"DeepseekV41ForCausalLM"}));
  root.require("model_type", "deepseek_v41");
  root.require("dtype", "bfloat16");
  root.allow("torch_dtype", "bfloat16");
  root.allow("tie_word_embeddings", false);
  for (const char* name : {"transformers_version", "auto_map", "_name_or_path", "use_cache"})
    root.ignore(name);
  root.allow("tokenizer_compatibility", "native");
  config.native_tokenizer = root.has("tokenizer_compatibility");
  read_quantization(root.section("quantization_config"));
  ConfigReader text = root.section("text_config");
  config.vocab_size = text.small("vocab_size", 1, kLargestVocabulary);
  config.bos_token_id = root.small("bos_token_id", 0, config.vocab_size - 1);
  config.eos_token_id = root.small("eos_token_id", 0, config.vocab_size - 1);
  config.pad_token_id = root.small("pad_token_id", 0, config.vocab_size - 1);
  read_text(text, config);
  if (root.has("vision_config")) read_vision(root.section("vision_config"), config.vision);
  root.ignore("vision_config");
  if (config.vision.layers > 0 || root.has("image_token_id")) {
    config.image_token_id = root.small("image_token_id", 0, config.vocab_size - 1);
  }
  root.ignore("image_token_id");
  root.finish();
  return config;
}

ModelConfig parse_config_text(std::string_view text, const std::string& subject) {
  constexpr std::size_t kMostMembers = 1000;
  Json root = Json::object();
  read_json_members(text, subject, {}, [&](std::string_view, const std::string& name, Json value) {
    if (root.size() >= kMostMembers) throw InputError(subject, "too many members");
    root[name] = std::move(value);
  });
  return parse_config(root, subject);
}

ModelConfig load_config(const std::filesystem::path& file) {
  constexpr std::size_t kLargestFile = std::size_t{1} << 20;
  return parse_config_text(read_text_file(file, kLargestFile), file.string());
}

}  // namespace thalweg::checkpoint
