// config.json: what is read, and what is refused by the name of its field.
#include "checkpoint/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::small_config;

std::filesystem::path source_directory() {
  return THALWEG_SOURCE_DIR;
}

TEST(Config, ReadsTheReleasedConfiguration) {
  const ModelConfig config = load_config(source_directory() / "tests/data/released_config.json");
  EXPECT_EQ(config.layers, 40);
  EXPECT_EQ(config.draft.layers, 3);
  EXPECT_EQ(config.vision.layers, 32);
  EXPECT_EQ(config.rms_norm_eps, 1e-20);
  EXPECT_EQ(config.candidate_topk_blocks, 2048);
  EXPECT_EQ(config.image_token_id, 129264);
  EXPECT_THAT(config.draft.target_layer_ids, ElementsAre(37, 38, 39));
  EXPECT_FALSE(config.native_tokenizer);
  EXPECT_FALSE(config.vision.max_wh_ratio.has_value());
}

TEST(Config, TheReleasedTensorTableHasTheTotalsOfTheReleasedIndex) {
  const auto table = expected_tensors(load_config(source_directory() / "tests/data/released_config.json"));
  std::int64_t bytes = 0;
  for (const TensorInfo& info : table) bytes += info.bytes;
  EXPECT_EQ(table.size(), 96'085U);
  EXPECT_EQ(bytes, 510'286'023'000);
}

TEST(Config, ReadsMini) {
  const ModelConfig config = load_config(source_directory() / "models/mini/config.json");
  EXPECT_TRUE(config.native_tokenizer);
  EXPECT_EQ(config.vision.layers, 0);
  EXPECT_EQ(config.engram.rows, (std::vector<std::int64_t>{30106, 30454}));
}

TEST(Config, NeedsNoDraftVisionEngramOrCandidates) {
  Json json = small_config();
  Json& text = json["text_config"];
  text["num_nextn_predict_layers"] = 0;
  text["compress_ratios"] = {0, 2, 1};
  text["engram_layer_ids"] = Json::array();
  text["engram_num_embeddings"] = Json::array();
  text["candidate_source_layer_id"] = nullptr;
  for (const char* name :
       {"dspark_block_size", "dspark_noise_token_id", "engram_n_heads", "candidate_block_size"}) {
    text.erase(name);
  }
  json.erase("vision_config");
  json.erase("image_token_id");
  const ModelConfig config = parse_config(json, "config.json");
  EXPECT_EQ(config.draft.layers, 0);
  EXPECT_EQ(config.vision.layers, 0);
  EXPECT_TRUE(config.engram.layer_ids.empty());
  EXPECT_EQ(config.candidate_source_layer_id, -1);
  EXPECT_EQ(config.image_token_id, -1);
}

TEST(Config, AcceptsOptionalMembersWithTheirOnlyValue) {
  Json json = small_config();
  json["transformers_version"] = "4.60.0";
  json["torch_dtype"] = "bfloat16";
  json["text_config"]["hc_shifted"] = true;
  json["text_config"]["use_fp4_sparse_kv"] = true;
  json["text_config"]["dspark_target_attn_input"] = true;
  json["text_config"]["index_k_source_layer_ids"] = {1, 2};
  json["quantization_config"]["fmt"] = "e4m3";
  EXPECT_NO_THROW(parse_config(json, "config.json"));
}

// One change to a valid configuration: the member at `path` gets `value`, or goes if `value` is empty.
struct Change {
  const char* path;
  const char* value;
  const char* problem;           // part of the message besides the field
  const char* blamed = nullptr;  // the field named, if not the one at `path`
};

const Change kChanges[] = {
    {"/architectures", R"(["LlamaForCausalLM"])", "DeepseekV41ForCausalLM"},
    {"/model_type", R"("deepseek_v4")", "deepseek_v41"},
    {"/model_type", "", "no such member"},
    {"/dtype", R"("float16")", "bfloat16"},
    {"/tie_word_embeddings", "true", "false"},
    {"/tokenizer_compatibility", R"("foreign")", "native"},
    {"/sparse_mode", R"("fast")", "unknown member"},
    {"/bos_token_id", "-1", "0 to 15"},
    {"/eos_token_id", "16", "0 to 15"},
    {"/pad_token_id", R"("2")", "an integer"},
    {"/image_token_id", "16", "0 to 15"},
    {"/image_token_id", "", "no such member"},
    {"/quantization_config", "", "no such member"},
    {"/quantization_config/quant_method", R"("awq")", "fp8"},
    {"/quantization_config/expert_dtype", R"("fp8")", "fp4"},
    {"/quantization_config/activation_scheme", R"("static")", "dynamic"},
    {"/quantization_config/weight_block_size", "[128, 128]", "[32,32]"},
    {"/quantization_config/scale_fmt", R"("fp32")", "ue8m0"},
    {"/quantization_config/fmt", R"("e5m2")", "e4m3"},
    {"/quantization_config/modules_to_not_convert", "[]", "unknown member"},
    {"/text_config", "", "no such member"},
    {"/text_config", "[]", "an object"},
    {"/text_config/model_type", R"("deepseek_v4_text")", "deepseek_v41_text"},
    {"/text_config/unknown_gate", "1", "unknown member"},
    {"/text_config/vocab_size", "0", "an integer from 1 to"},
    {"/text_config/vocab_size", "16.0", "an integer"},
    {"/text_config/vocab_size", "1e30", "an integer"},
    {"/text_config/vocab_size", "18446744073709551615", "an integer"},
    {"/text_config/hidden_size", R"("32")", "an integer"},
    {"/text_config/hidden_size", "33", "a multiple of 32"},
    {"/text_config/hidden_size", "true", "an integer"},
    {"/text_config/hidden_size", "null", "an integer"},
    {"/text_config/hidden_size", "9223372036854775807", "an integer"},
    {"/text_config/num_hidden_layers", "1000000", "1024"},
    {"/text_config/num_hidden_layers", "0", "1 to 1024"},
    {"/text_config/num_hidden_layers", "4", "5 entries", "compress_ratios"},
    {"/text_config/num_attention_heads", "3", "a divisor of num_attention_heads, 3", "o_groups"},
    {"/text_config/num_key_value_heads", "2", "1"},
    {"/text_config/head_dim", "48", "a multiple of 32"},
    {"/text_config/qk_rope_head_dim", "15", "a multiple of 2"},
    {"/text_config/qk_rope_head_dim", "34", "at most head_dim"},
    {"/text_config/qk_rope_head_dim", "0", "an integer from 1"},
    {"/text_config/q_lora_rank", "16", "a multiple of 32"},
    {"/text_config/o_lora_rank", "16", "a multiple of 32"},
    {"/text_config/moe_intermediate_size", "16", "a multiple of 32"},
    {"/text_config/index_head_dim", "16", "a multiple of 32"},
    {"/text_config/engram_head_dim", "16", "a multiple of 32"},
    {"/text_config/n_routed_experts", "0", "an integer from 1"},
    {"/text_config/n_shared_experts", "2", "1"},
    {"/text_config/num_experts_per_tok", "3", "at most n_routed_experts, 2"},
    {"/text_config/scoring_func", R"("softmax")", "sqrtsoftplus"},
    {"/text_config/topk_method", R"("greedy")", "noaux_tc"},
    {"/text_config/norm_topk_prob", "false", "true"},
    {"/text_config/norm_topk_prob", "1", "true"},
    {"/text_config/routed_scaling_factor", "0", "greater than 0"},
    {"/text_config/hidden_act", R"("gelu")", "silu"},
    {"/text_config/swiglu_limit", "-10", "greater than 0"},
    {"/text_config/rms_norm_eps", "0", "greater than 0"},
    {"/text_config/rms_norm_eps", R"("1e-20")", "a finite number"},
    {"/text_config/attention_bias", "true", "false"},
    {"/text_config/attention_dropout", "0.1", "0"},
    {"/text_config/tie_word_embeddings", "true", "false"},
    {"/text_config/sliding_window", "0", "an integer from 1"},
    {"/text_config/compress_ratios", "[0, 2, 1]", "4 entries"},
    {"/text_config/compress_ratios", "[0, 2, 1, 1]", "0 for a draft layer", "compress_ratios[3]"},
    {"/text_config/compress_ratios", "[0, 2, 3, 0]", "0 to 2", "compress_ratios[2]"},
    {"/text_config/compress_ratios", "[0, 2, \"1\", 0]", "0 to 2", "compress_ratios[2]"},
    {"/text_config/compress_ratios", "2", "an array"},
    {"/text_config/compress_ratios", "[2, 2, 1, 0]", "no KV source", "kv_source_layer_ids"},
    {"/text_config/compress_ratios", "[0, 0, 1, 0]", "layer 1 has compress_ratio 0",
     "index_source_layer_ids"},
    {"/text_config/kv_source_layer_ids", "[1]", "its KV source, layer 1, has ratio 2"},
    {"/text_config/kv_source_layer_ids", "[2, 1]", "strictly increasing"},
    {"/text_config/kv_source_layer_ids", "[1, 1, 2]", "strictly increasing"},
    {"/text_config/kv_source_layer_ids", "[1, 3]", "0 to 2", "kv_source_layer_ids[1]"},
    {"/text_config/kv_source_layer_ids", "[-1, 1]", "0 to 2", "kv_source_layer_ids[0]"},
    {"/text_config/index_source_layer_ids", "[2]", "layer 1 is no index source", "kv_source_layer_ids"},
    {"/text_config/index_source_layer_ids", "[0, 1, 2]", "layer 0 has compress_ratio 0"},
    {"/text_config/index_k_source_layer_ids", "[1]", "[1,2]"},
    {"/text_config/index_topk", "0", "an integer from 1"},
    {"/text_config/index_topk", "9", "fewer rows than index_topk", "candidate_topk_blocks"},
    {"/text_config/candidate_source_layer_id", "0", "one of kv_source_layer_ids"},
    {"/text_config/candidate_source_layer_id", "1", "their ratios are 1 and 2"},
    {"/text_config/candidate_source_layer_id", "3", "-1 to 2"},
    {"/text_config/candidate_topk_blocks", "6", "a multiple of 4"},
    {"/text_config/candidate_topk_blocks", "4100", "1 to 4096"},
    {"/text_config/candidate_block_size", "0", "1 to 4096"},
    {"/text_config/compress_rope_theta", "0", "greater than 0"},
    {"/text_config/rope_theta", "-10000", "greater than 0"},
    {"/text_config/rope_theta", "", "no such member"},
    {"/text_config/rope_scaling", "null", "an object"},
    {"/text_config/rope_scaling/rope_type", R"("linear")", "yarn"},
    {"/text_config/rope_scaling/factor", "0", "greater than 0"},
    {"/text_config/rope_scaling/mscale", "0.7", "unknown member"},
    {"/text_config/rope_scaling/original_max_position_embeddings", "64.5", "an integer"},
    {"/text_config/max_position_embeddings", "0", "an integer from 1"},
    {"/text_config/hc_mult", "0", "1 to 16"},
    {"/text_config/hc_sinkhorn_iters", "0", "1 to 1000"},
    {"/text_config/hc_eps", "0", "greater than 0"},
    {"/text_config/hc_shifted", "false", "true"},
    {"/text_config/use_fp4_sparse_kv", "false", "true"},
    {"/text_config/gate_temp", "2", "1"},
    {"/text_config/dspark_target_attn_input", "false", "true"},
    {"/text_config/engram_layer_ids", "[0, 1]", "2 entries", "engram_num_embeddings"},
    {"/text_config/engram_layer_ids", "[3]", "0 to 2", "engram_layer_ids[0]"},
    {"/text_config/engram_num_embeddings", "[25]", "24, the sum of the 2 primes of layer 0",
     "engram_num_embeddings[0]"},
    {"/text_config/engram_num_embeddings", "[24.0]", "an integer", "engram_num_embeddings[0]"},
    {"/text_config/engram_max_ngram_size", "1", "2 to 64"},
    {"/text_config/engram_vocab_size", "12", "30, the sum", "engram_num_embeddings[0]"},
    {"/text_config/engram_compressed_vocab_size", "17", "1 to 16"},
    {"/text_config/engram_pad_token_id", "16", "0 to 15"},
    {"/text_config/engram_n_heads", "", "no such member"},
    {"/text_config/num_nextn_predict_layers", "-1", "0 to 1024"},
    {"/text_config/num_nextn_predict_layers", "0", "3 entries", "compress_ratios"},
    {"/text_config/dspark_block_size", "0", "an integer from 1"},
    {"/text_config/dspark_noise_token_id", "16", "0 to 15"},
    {"/text_config/dspark_target_layer_ids", "[]", "at least one"},
    {"/text_config/dspark_target_layer_ids", "[2, 1]", "strictly increasing"},
    {"/text_config/dspark_target_layer_ids", "[1, 3]", "0 to 2", "dspark_target_layer_ids[1]"},
    {"/text_config/dspark_num_experts_per_tok", "3", "at most dspark_n_routed_experts, 2"},
    {"/text_config/dspark_markov_rank", "", "no such member"},
    {"/text_config/bos_token_id", "1", "0"},
    {"/vision_config", "3", "an object"},
    {"/vision_config/model_type", R"("siglip")", "deepseek_v41_vision"},
    {"/vision_config/num_hidden_layers", "-1", "0 to 1024"},
    {"/vision_config/hidden_size", "12", "num_attention_heads, 2, times a multiple of 4"},
    {"/vision_config/patch_size", "0", "an integer from 1"},
    {"/vision_config/max_wh_ratio", "-2", "greater than 0"},
    {"/vision_config/rope_theta", "0", "greater than 0"},
    {"/vision_config/mean", "[0.5]", "unknown member"},
};

std::string refusal(const Json& json) {
  try {
    parse_config(json, "config.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string dotted(std::string_view path) {
  std::string name(path.substr(1));
  std::ranges::replace(name, '/', '.');
  return name;
}

class ChangedConfig : public ::testing::TestWithParam<Change> {};

TEST_P(ChangedConfig, IsRefusedByTheNameOfTheField) {
  const Change& change = GetParam();
  const Json::json_pointer pointer(change.path);
  Json json = small_config();
  if (*change.value == '\0') {
    json.at(pointer.parent_pointer()).erase(pointer.back());
  } else {
    json[pointer] = parse_json(change.value, "value");
  }
  const std::string field = change.blamed != nullptr ? change.blamed : dotted(change.path);
  EXPECT_THAT(refusal(json),
              AllOf(HasSubstr("config.json: "), HasSubstr(field + ": "), HasSubstr(change.problem)));
}

INSTANTIATE_TEST_SUITE_P(Table, ChangedConfig, ::testing::ValuesIn(kChanges));

struct BadText {
  const char* name;
  std::string text;
  const char* problem;
};

class BadConfigText : public ::testing::TestWithParam<BadText> {};

TEST_P(BadConfigText, IsRefused) {
  const TemporaryFolder directory;
  const auto file = directory.path() / "config.json";
  testing::write_file(file, GetParam().text);
  try {
    load_config(file);
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr(file.string()), HasSubstr(GetParam().problem)));
  }
}

std::vector<BadText> bad_texts() {
  std::string many = "{";
  for (int i = 0; i < 2000; ++i) many += "\"k" + std::to_string(i) + "\":0,";
  return {
      {"Empty", "", "not valid JSON"},
      {"Array", "[]", "object"},
      {"Number", "3", "object"},
      {"Cut", R"({"text_config": {"hidden_size": )", "text_config.hidden_size: not valid JSON"},
      {"NotANumber", R"({"text_config": {"rms_norm_eps": NaN}})", "text_config.rms_norm_eps: not valid JSON"},
      {"Infinity", R"({"text_config": {"swiglu_limit": Infinity}})",
       "text_config.swiglu_limit: not valid JSON"},
      {"HugeNumber", R"({"text_config": {"swiglu_limit": 1e999}})",
       "text_config.swiglu_limit: not valid JSON"},
      {"RepeatedMember", R"({"dtype": "bfloat16", "dtype": "float32"})", "dtype: appears twice"},
      {"RepeatedField", R"({"text_config": {"head_dim": 32, "head_dim": 64}})",
       "text_config.head_dim: appears twice"},
      {"Trailing", "{} x", "not valid JSON"},
      {"ManyMembers", many + "\"end\":0}", "too many members"},
      {"DeepNesting", R"({"text_config": )" + std::string(100000, '['), "nested deeper"},
      {"TooLarge", std::string((1 << 20) + 1, ' '), "1048576 bytes"}};
}

INSTANTIATE_TEST_SUITE_P(Table, BadConfigText, ::testing::ValuesIn(bad_texts()),
                         [](const auto& param) { return param.param.name; });

TEST(Config, NamesAMissingFile) {
  EXPECT_THROW(load_config("/no/such/config.json"), InputError);
}

TEST(Config, ReadsTheGoldenConfigurations) {
  for (const char* name : {"tiny", "wide", "long", "realheads"}) {
    const auto file = source_directory() / "../shared/golden" / name / "model/config.json";
    if (!std::filesystem::exists(file)) GTEST_SKIP() << "golden data directory is missing";
    EXPECT_NO_THROW(load_config(file)) << name;
  }
}

}  // namespace
}  // namespace thalweg::checkpoint
