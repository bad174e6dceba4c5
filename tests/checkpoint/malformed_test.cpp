// Spoiled checkpoint directories: each is refused by the name of what is wrong.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::read_file;
using testing::SmallCheckpoint;
using testing::SmallTensor;
using testing::write_file;

// The tensor called `name`, wherever it is.
SmallTensor& tensor(SmallCheckpoint& small, const std::string& name) {
  return small.shards.at(small.index["weight_map"].at(name)).at(name);
}

std::map<std::string, SmallTensor>& shard_of(SmallCheckpoint& small, const std::string& name) {
  return small.shards.at(small.index["weight_map"].at(name));
}

// Takes the tensor out of the shard, the index and the total.
SmallTensor remove(SmallCheckpoint& small, const std::string& name) {
  SmallTensor taken = shard_of(small, name).extract(name).mapped();
  small.index["weight_map"].erase(name);
  small.index["metadata"]["total_size"] =
      small.index["metadata"]["total_size"].get<std::size_t>() - taken.bytes.size();
  return taken;
}

void add(SmallCheckpoint& small, const std::string& name, SmallTensor added) {
  small.index["metadata"]["total_size"] =
      small.index["metadata"]["total_size"].get<std::size_t>() + added.bytes.size();
  small.index["weight_map"][name] = "a.safetensors";
  small.shards["a.safetensors"][name] = std::move(added);
}

SmallTensor make(DType dtype, std::vector<std::int64_t> shape) {
  std::int64_t bytes = dtype_size(dtype);
  for (const std::int64_t n : shape) bytes *= n;
  return {dtype, std::move(shape), std::vector<std::byte>(static_cast<std::size_t>(bytes), std::byte{1})};
}

void replace(SmallCheckpoint& small, const std::string& name, DType dtype, std::vector<std::int64_t> shape) {
  remove(small, name);
  add(small, name, make(dtype, std::move(shape)));
}

void set_byte(SmallCheckpoint& small, const std::string& name, std::size_t at, int value) {
  tensor(small, name).bytes.at(at) = static_cast<std::byte>(value);
}

// `before` spoils the checkpoint in memory, `after` the files.
struct Spoiled {
  const char* name;
  std::function<void(SmallCheckpoint&)> before;
  std::function<void(const std::filesystem::path&)> after;
  std::vector<std::string> message;
};

Spoiled in_memory(const char* name, std::function<void(SmallCheckpoint&)> before,
                  std::vector<std::string> message) {
  return {name, std::move(before), [](const auto&) {}, std::move(message)};
}

Spoiled on_disk(const char* name, std::function<void(const std::filesystem::path&)> after,
                std::vector<std::string> message) {
  return {name, [](SmallCheckpoint&) {}, std::move(after), std::move(message)};
}

Spoiled missing(const char* name, const std::string& tensor_name) {
  return in_memory(name, [=](SmallCheckpoint& s) { remove(s, tensor_name); },
                   {"index.json", "\"" + tensor_name + "\"", "no such tensor"});
}

Spoiled reshaped(const char* name, const std::string& tensor_name, DType dtype,
                 std::vector<std::int64_t> shape, const std::string& expected) {
  const std::string found = fmt::format("found {} {}", dtype_name(dtype), shape_text(shape));
  return in_memory(name, [=](SmallCheckpoint& s) { replace(s, tensor_name, dtype, shape); },
                   {"a.safetensors", "\"" + tensor_name + "\"", "expected " + expected, found});
}

Spoiled poisoned(const char* name, const std::string& tensor_name, std::size_t at, int code) {
  return in_memory(name, [=](SmallCheckpoint& s) { set_byte(s, tensor_name, at, code); },
                   {".safetensors", "\"" + tensor_name + "\"", fmt::format("element {} is a NaN", at),
                    fmt::format("0x{:02X}", code)});
}

std::vector<Spoiled> tensor_cases() {
  return {
      missing("EmbeddingMissing", "embed.weight"),
      missing("HeadMissing", "head.weight"),
      missing("ScaleMissing", "layers.0.attn.wq_a.scale"),
      missing("WeightOfScaleMissing", "layers.1.attn.wo_b.weight"),
      missing("ExpertMissing", "layers.2.ffn.experts.1.w3.weight"),
      missing("ExpertScaleMissing", "layers.2.ffn.experts.0.w2.scale"),
      missing("GateOfRatioTwoMissing", "layers.1.attn.compressor.wgate.weight"),
      missing("IndexerMissing", "layers.2.attn.indexer.weights_proj.weight"),
      missing("EngramTableMissing", "layers.0.engram.embed.weight"),
      missing("EngramScaleMissing", "layers.0.engram.embed.scale"),
      missing("ImageBiasMissing", "mtp.0.ffn.gate.bias_vl"),
      missing("DraftProjectionMissing", "mtp.0.main_proj.weight"),
      missing("ConfidenceHeadMissing", "mtp.0.confidence_head.proj.weight"),
      missing("VisionBiasMissing", "vision.blocks.0.attn.wqkv.bias"),
      missing("AlignerMissing", "aligner.w2.weight"),
      missing("DelimiterMissing", "image_newline"),
      reshaped("EmbeddingTransposed", "embed.weight", DType::bf16, {32, 16}, "BF16 [16, 32]"),
      reshaped("EmbeddingFloat16", "embed.weight", DType::f16, {16, 32}, "BF16 [16, 32]"),
      reshaped("DenseNotQuantised", "layers.0.attn.wkv.weight", DType::bf16, {32, 32}, "F8_E4M3 [32, 32]"),
      reshaped("DenseOtherFloat8", "layers.0.attn.wkv.weight", DType::e5m2, {32, 32}, "F8_E4M3 [32, 32]"),
      reshaped("ScaleIsFloat", "layers.0.attn.wo_a.scale", DType::f32, {2, 1}, "F8_E8M0 [2, 1]"),
      reshaped("ScaleOfOtherBlocks", "layers.0.attn.wo_a.scale", DType::e8m0, {1, 1}, "F8_E8M0 [2, 1]"),
      reshaped("ExpertUnsigned", "layers.0.ffn.experts.0.w1.weight", DType::u8, {32, 16}, "I8 [32, 16]"),
      reshaped("ExpertNotPacked", "layers.0.ffn.experts.0.w1.weight", DType::i8, {32, 32}, "I8 [32, 16]"),
      reshaped("MixIsHalf", "layers.0.hc_attn_fn", DType::bf16, {8, 64}, "F32 [8, 64]"),
      reshaped("SinkOfOtherHeads", "layers.0.attn.attn_sink", DType::f32, {3}, "F32 [2]"),
      reshaped("NormWithTwoAxes", "norm.weight", DType::bf16, {1, 32}, "BF16 [32]"),
      reshaped("EngramRowTooMany", "layers.0.engram.embed.weight", DType::e4m3, {25, 32}, "F8_E4M3 [24, 32]"),
      reshaped("ConfidenceFlat", "mtp.0.confidence_head.proj.weight", DType::bf16, {36}, "BF16 [1, 36]"),
      reshaped("AlignerOtherCell", "aligner.w1.weight", DType::bf16, {32, 8}, "BF16 [32, 32]"),
      poisoned("NaNInDense", "layers.2.attn.wq_b.weight", 77, 0x7f),
      poisoned("NegativeNaNInDense", "layers.2.attn.wq_b.weight", 0, 0xff),
      poisoned("NaNInEngram", "layers.0.engram.embed.weight", 24 * 32 - 1, 0xff),
      poisoned("NaNScale", "layers.1.ffn.experts.1.w2.scale", 3, 0xff),
      poisoned("NaNInDraft", "mtp.0.main_proj.weight", 5, 0x7f),
      in_memory("UnexpectedTensor",
                [](SmallCheckpoint& s) { add(s, "layers.0.attn.extra", make(DType::f32, {1})); },
                {"a.safetensors", "\"layers.0.attn.extra\"", "unexpected"}),
      in_memory("ExpertTooMany",
                [](SmallCheckpoint& s) {
                  add(s, "layers.0.ffn.experts.2.w1.scale", make(DType::e8m0, {32, 1}));
                },
                {"\"layers.0.ffn.experts.2.w1.scale\"", "unexpected"}),
      in_memory("GateOfRatioOne",
                [](SmallCheckpoint& s) {
                  add(s, "layers.2.attn.compressor.wgate.weight", make(DType::bf16, {32, 32}));
                },
                {"\"layers.2.attn.compressor.wgate.weight\"", "unexpected"}),
      in_memory("HyperConnectionNorm",
                [](SmallCheckpoint& s) { add(s, "hc_head_fn", make(DType::f32, {2})); },
                {"\"hc_head_fn\"", "unexpected"}),
      in_memory("LayerTooMany",
                [](SmallCheckpoint& s) { add(s, "layers.3.attn_norm.weight", make(DType::bf16, {32})); },
                {"\"layers.3.attn_norm.weight\"", "unexpected"}),
      in_memory("BiasOfLinear",
                [](SmallCheckpoint& s) { add(s, "layers.0.attn.wq_a.bias", make(DType::bf16, {32})); },
                {"\"layers.0.attn.wq_a.bias\"", "unexpected"}),
      in_memory("NameTwice",
                [](SmallCheckpoint& s) {
                  s.shards["a.safetensors"]["model.norm.weight"] = make(DType::bf16, {32});
                },
                {"\"", "norm.weight\"", "also in"}),
  };
}

std::vector<Spoiled> index_cases() {
  const std::string index = "model.safetensors.index.json";
  const auto with_index = [=](const std::string& text) {
    return [=](const std::filesystem::path& d) { write_file(d / index, text); };
  };
  return {
      on_disk("IndexMissing", [=](const auto& d) { std::filesystem::remove(d / index); }, {"neither"}),
      on_disk("IndexEmpty", with_index(""), {index, "not valid JSON"}),
      on_disk("IndexIsArray", with_index("[]"), {index, "object"}),
      on_disk("IndexWithoutMap", with_index(R"({"metadata":{}})"), {index, "weight_map"}),
      on_disk("IndexMapIsList", with_index(R"({"weight_map":[]})"), {index, "weight_map", "object"}),
      on_disk("IndexMapEmpty", with_index(R"({"weight_map":{}})"), {index, "weight_map", "none"}),
      on_disk("IndexShardIsNumber", with_index(R"({"weight_map":{"norm.weight":1}})"),
              {index, "\"norm.weight\""}),
      on_disk("IndexShardOutside", with_index(R"({"weight_map":{"norm.weight":"../a.safetensors"}})"),
              {index, "\"norm.weight\"", "beside the index"}),
      on_disk("IndexShardAbsolute", with_index(R"({"weight_map":{"norm.weight":"/etc/passwd"}})"),
              {index, "\"norm.weight\"", "beside the index"}),
      on_disk("IndexShardEmptyName", with_index(R"({"weight_map":{"norm.weight":""}})"),
              {index, "\"norm.weight\""}),
      on_disk("IndexNameTwice",
              with_index(R"({"weight_map":{"norm.weight":"a.safetensors","norm.weight":"b.safetensors"}})"),
              {index, "weight_map.norm.weight", "twice"}),
      on_disk(
          "IndexNameTwiceWithPrefix",
          with_index(R"({"weight_map":{"norm.weight":"a.safetensors","model.norm.weight":"b.safetensors"}})"),
          {index, "\"model.norm.weight\"", "twice"}),
      in_memory("IndexNamesOtherShard",
                [](SmallCheckpoint& s) {
                  auto& shard = s.index["weight_map"]["norm.weight"];
                  shard = shard == "a.safetensors" ? "b.safetensors" : "a.safetensors";
                },
                {"\"norm.weight\"", "listed in model.safetensors.index.json as part of"}),
      in_memory("IndexLacksTensor", [](SmallCheckpoint& s) { s.index["weight_map"].erase("norm.weight"); },
                {".safetensors", "\"norm.weight\"", "not listed"}),
      in_memory("ShardLacksTensor",
                [](SmallCheckpoint& s) { shard_of(s, "norm.weight").erase("norm.weight"); },
                {".safetensors", "\"norm.weight\"", "missing, although"}),
      in_memory("TotalSizeWrong", [](SmallCheckpoint& s) { s.index["metadata"]["total_size"] = 7; },
                {index, "metadata.total_size", "found 7"}),
      in_memory("TotalSizeIsText", [](SmallCheckpoint& s) { s.index["metadata"]["total_size"] = "many"; },
                {index, "metadata.total_size", "many"}),
      in_memory("MetadataIsList", [](SmallCheckpoint& s) { s.index["metadata"] = Json::array(); },
                {index, "metadata", "an object"}),
  };
}

void cut(const std::filesystem::path& file, std::uintmax_t bytes) {
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - bytes);
}

std::vector<Spoiled> file_cases() {
  const auto shard = [](const std::filesystem::path& d) { return d / "b.safetensors"; };
  return {
      on_disk("ShardMissing", [=](const auto& d) { std::filesystem::remove(shard(d)); },
              {"b.safetensors", "cannot open"}),
      on_disk("ShardIsDirectory",
              [=](const auto& d) {
                std::filesystem::remove(shard(d));
                std::filesystem::create_directory(shard(d));
              },
              {"b.safetensors", "regular file"}),
      on_disk("ShardEmpty", [=](const auto& d) { write_file(shard(d), ""); }, {"b.safetensors", "0 bytes"}),
      on_disk("ShardCutByFourKilobytes", [=](const auto& d) { cut(shard(d), 4096); },
              {"b.safetensors", "\"", "the file is 4096 bytes short"}),
      on_disk("ShardCutByOneByte", [=](const auto& d) { cut(shard(d), 1); },
              {"b.safetensors", "cut off: 1 of its", "1 bytes short"}),
      on_disk("ShardCutInHeader", [=](const auto& d) { std::filesystem::resize_file(shard(d), 1000); },
              {"b.safetensors", "bytes short"}),
      on_disk("ShardWithTrailingBytes",
              [=](const auto& d) { write_file(shard(d), read_file(shard(d)) + "\n"); },
              {"b.safetensors", "1 trailing bytes"}),
      on_disk("ShardIsText",
              [=](const auto& d) { write_file(shard(d), "version https://example.org/lfs\n"); },
              {"b.safetensors", "header"}),
      on_disk("ShardIsOtherShard",
              [=](const auto& d) { write_file(shard(d), read_file(d / "a.safetensors")); },
              {"b.safetensors", "also in a.safetensors"}),
      on_disk("ConfigMissing", [](const auto& d) { std::filesystem::remove(d / "config.json"); },
              {"config.json", "cannot open"}),
      on_disk(
          "ConfigOfOtherModel",
          [](const auto& d) { write_file(d / "config.json", R"({"architectures":["LlamaForCausalLM"]})"); },
          {"config.json", "architectures"}),
      in_memory("ConfigWithOtherWidth",
                [](SmallCheckpoint& s) { s.config["text_config"]["hidden_size"] = 64; },
                {".safetensors", "\"embed.weight\"", "expected BF16 [16, 64]", "found BF16 [16, 32]"}),
      in_memory("ConfigWithMoreExperts",
                [](SmallCheckpoint& s) { s.config["text_config"]["n_routed_experts"] = 3; },
                {"\"layers.0.ffn.gate.weight\"", "expected BF16 [3, 32]"}),
      in_memory("ConfigWithoutVision",
                [](SmallCheckpoint& s) { s.config["vision_config"]["num_hidden_layers"] = 0; },
                {"\"aligner.w1.bias\"", "unexpected"}),
      in_memory("ConfigWithoutDraft",
                [](SmallCheckpoint& s) {
                  s.config["text_config"]["num_nextn_predict_layers"] = 0;
                  s.config["text_config"]["compress_ratios"] = {0, 2, 1};
                },
                {"\"mtp.0.attn.attn_sink\"", "unexpected"}),
  };
}

std::string refusal(const std::filesystem::path& directory) {
  try {
    Checkpoint::load(directory, {.threads = 1, .progress = {}});
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

class SpoiledCheckpoint : public ::testing::TestWithParam<Spoiled> {};

TEST_P(SpoiledCheckpoint, IsRefusedByName) {
  const TemporaryFolder directory;
  SmallCheckpoint small;
  GetParam().before(small);
  small.write(directory.path());
  GetParam().after(directory.path());
  const std::string message = refusal(directory.path());
  for (const std::string& part : GetParam().message) EXPECT_THAT(message, HasSubstr(part));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

const auto kName = [](const auto& param) { return param.param.name; };
INSTANTIATE_TEST_SUITE_P(Tensors, SpoiledCheckpoint, ::testing::ValuesIn(tensor_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Index, SpoiledCheckpoint, ::testing::ValuesIn(index_cases()), kName);
INSTANTIATE_TEST_SUITE_P(Files, SpoiledCheckpoint, ::testing::ValuesIn(file_cases()), kName);

TEST(Checkpoint, NamesAMissingDirectory) {
  EXPECT_THAT(refusal("/no/such/model"), AllOf(HasSubstr("/no/such/model"), HasSubstr("not a directory")));
}

}  // namespace
}  // namespace thalweg::checkpoint
