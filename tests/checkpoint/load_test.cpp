// Loading whole checkpoints that are right.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/small_checkpoint.hpp"
#include "support/temporary_folder.hpp"

namespace thalweg::checkpoint {
namespace {

using testing::SmallCheckpoint;
using testing::SmallTensor;

std::filesystem::path source_directory() {
  return THALWEG_SOURCE_DIR;
}

TEST(CheckpointLoad, ReadsMini) {
  const Checkpoint checkpoint = Checkpoint::load(source_directory() / "models/mini");
  EXPECT_EQ(checkpoint.tensors().size(), 1866U);
  EXPECT_EQ(checkpoint.total_bytes(), 37'840'312);
  EXPECT_EQ(checkpoint.weights().layers.size(), 9U);
  EXPECT_EQ(checkpoint.weights().draft->layers.size(), 2U);
}

TEST(CheckpointLoad, ReadsTiny) {
  const Checkpoint checkpoint = Checkpoint::load(source_directory() / "tests/data/tiny/model");
  EXPECT_EQ(checkpoint.tensors().size(), 1571U);
  EXPECT_EQ(checkpoint.total_bytes(), 7'230'022);
}

TEST(CheckpointLoad, ReadsEveryGoldenModel) {
  for (const char* name : {"tiny", "wide", "long", "realheads"}) {
    const auto directory = source_directory() / "../shared/golden" / name / "model";
    if (!std::filesystem::exists(directory)) GTEST_SKIP() << "golden data directory is missing";
    EXPECT_NO_THROW(Checkpoint::load(directory)) << name;
  }
}

TEST(CheckpointLoad, PutsEachTensorWhereItBelongs) {
  const TemporaryFolder directory;
  SmallCheckpoint small;
  int code = 1;  // a byte of its own for each tensor, never a NaN
  std::map<std::string, std::uint8_t> mark;
  for (auto& [file, tensors] : small.shards) {
    for (auto& [name, tensor] : tensors) {
      mark[name] = static_cast<std::uint8_t>(code = code % 120 + 1);
      std::ranges::fill(tensor.bytes, std::byte{mark[name]});
    }
  }
  small.write(directory.path());
  const Checkpoint checkpoint = Checkpoint::load(directory.path());
  const Weights& w = checkpoint.weights();
  const auto expect = [&](const char* name, const void* data) {
    EXPECT_EQ(*static_cast<const std::uint8_t*>(data), mark.at(name)) << name;
  };
  expect("embed.weight", w.embed.data);
  expect("head.weight", w.head.data);
  expect("norm.weight", w.norm.data());
  expect("layers.0.attn_norm.weight", w.layers[0].attn_norm.data());
  expect("layers.0.hc_attn_base", w.layers[0].attn_mix.base.data());
  expect("layers.0.hc_ffn_scale", w.layers[0].ffn_mix.scale.data());
  expect("layers.0.engram.embed.scale", w.layers[0].engram->embed.scales);
  expect("layers.0.engram.k_weight", w.layers[0].engram->k_weight.data);
  expect("layers.1.attn.wq_b.weight", w.layers[1].attention.wq_b.codes);
  expect("layers.1.attn.wo_a.scale", w.layers[1].attention.wo_a.scales);
  expect("layers.1.attn.attn_sink", w.layers[1].attention.sink.data());
  expect("layers.1.attn.compressor.wgate.weight", w.layers[1].attention.compressor->wgate->data);
  expect("layers.1.attn.indexer.wk.weight", w.layers[1].attention.compressor->index_wk.data);
  expect("layers.2.attn.indexer.wq_b.weight", w.layers[2].attention.indexer->wq_b.codes);
  expect("layers.2.ffn.gate.bias_vl", w.layers[2].moe.bias_vl.data());
  expect("layers.2.ffn.experts.1.w3.weight", w.layers[2].moe.experts[1].w3.codes);
  expect("layers.2.ffn.experts.1.w2.scale", w.layers[2].moe.experts[1].w2.scales);
  expect("layers.2.ffn.shared_experts.w1.scale", w.layers[2].moe.shared.w1.scales);
  expect("mtp.0.main_proj.weight", w.draft->main_proj.codes);
  expect("mtp.0.markov_head.head.weight", w.draft->markov_head.data);
  expect("mtp.0.confidence_head.proj.weight", w.draft->confidence.data());
  EXPECT_FALSE(w.layers[0].attention.compressor.has_value());
  EXPECT_FALSE(w.layers[2].attention.compressor->wgate.has_value());
  EXPECT_FALSE(w.draft->layers[0].engram.has_value());
  EXPECT_EQ(w.layers[1].attention.wo_a.rows, 64);
  EXPECT_EQ(w.layers[1].attention.wo_a.cols, 32);
  EXPECT_EQ(w.draft->confidence.size(), 36U);
}

TEST(CheckpointLoad, ReadsASingleFileAndPrefixedNames) {
  const TemporaryFolder directory;
  SmallCheckpoint small;
  std::map<std::string, SmallTensor> all;
  for (auto& [file, tensors] : small.shards) {
    for (auto& [name, tensor] : tensors) all["model." + name] = tensor;
  }
  small.shards = {{"model.safetensors", all}};
  small.write(directory.path());
  std::filesystem::remove(directory.path() / "model.safetensors.index.json");
  EXPECT_EQ(Checkpoint::load(directory.path()).tensors().front().name, "embed.weight");
}

TEST(CheckpointLoad, AcceptsThePrefixInIndexOrHeaderAlone) {
  const TemporaryFolder directory;
  SmallCheckpoint small;
  Json prefixed = Json::object();
  for (const auto& [name, shard] : small.index["weight_map"].items()) prefixed["model." + name] = shard;
  small.index["weight_map"] = prefixed;
  small.write(directory.path());
  EXPECT_NO_THROW(Checkpoint::load(directory.path()));
}

TEST(CheckpointLoad, AlignsTensorsThatLieAtOddAddresses) {
  const TemporaryFolder directory;
  SmallCheckpoint small;
  small.write(directory.path());
  for (const char* name : {"a.safetensors", "b.safetensors"}) {
    // One more space in the header moves all data by one byte.
    std::string file = testing::read_file(directory.path() / name);
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    file.insert(8 + length, 1, ' ');
    ++length;
    std::memcpy(file.data(), &length, 8);
    testing::write_file(directory.path() / name, file);
  }
  const Checkpoint checkpoint = Checkpoint::load(directory.path());
  for (const LayerWeights& layer : checkpoint.weights().layers) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(layer.attn_mix.fn.data()) % alignof(float), 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(layer.attn_norm.data()) % alignof(Bf16Bits), 0U);
    EXPECT_EQ(layer.attn_norm.front(), 0x0101);
    EXPECT_EQ(layer.attn_mix.fn.back(), layer.attn_mix.fn.front());
  }
}

TEST(CheckpointLoad, ReportsProgressToTheEnd) {
  std::int64_t last = 0;
  std::int64_t total = -1;
  const auto progress = [&](std::int64_t done, std::int64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
  };
  Checkpoint::load(source_directory() / "models/mini", {.threads = 2, .progress = progress});
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 10'000'000);
}

TEST(CheckpointLoad, LeavesCodesUnreadOnRequest) {
  const TemporaryFolder directory;
  SmallCheckpoint small;
  for (auto& [file, tensors] : small.shards) {
    for (auto& [name, tensor] : tensors) {
      if (name == "layers.0.attn.wq_a.weight") tensor.bytes[0] = std::byte{0x7f};
    }
  }
  small.write(directory.path());
  EXPECT_NO_THROW(Checkpoint::load(directory.path(), {.check_codes = false, .progress = {}}));
}

TEST(CheckpointLoad, KeepsItsWeightsWhenMoved) {
  Checkpoint first = Checkpoint::load(source_directory() / "models/mini");
  const Bf16Bits* embed = first.weights().embed.data;
  const Checkpoint second = std::move(first);
  EXPECT_EQ(second.weights().embed.data, embed);
  EXPECT_EQ(second.directory(), source_directory() / "models/mini");
}

}  // namespace
}  // namespace thalweg::checkpoint
