#include "checkpoint/config_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/engram_hash.hpp"

namespace thalweg::checkpoint {
namespace {

bool contains(const std::vector<int>& ids, int id) {
  return std::ranges::binary_search(ids, id);
}

// The last id that is not after `layer`, or -1.
int source_of(const std::vector<int>& ids, int layer) {
  const auto after = std::ranges::upper_bound(ids, layer);
  return after == ids.begin() ? -1 : *(after - 1);
}

int ratio(const ModelConfig& config, int layer) {
  return config.compress_ratios[static_cast<std::size_t>(layer)];
}

void check_increasing(const std::vector<int>& ids, const ConfigReader& text, const char* name) {
  if (std::ranges::adjacent_find(ids, std::greater_equal<>()) != ids.end()) {
    text.fail(name, "expected layer ids in strictly increasing order");
  }
}

void check_ratios(const ModelConfig& config, const ConfigReader& text) {
  const std::size_t layers =
      static_cast<std::size_t>(config.layers) + static_cast<std::size_t>(config.draft.layers);
  if (config.compress_ratios.size() != layers) {
    text.fail("compress_ratios",
              fmt::format("{} entries (num_hidden_layers + num_nextn_predict_layers)", layers),
              fmt::format("{}", config.compress_ratios.size()));
  }
  for (std::size_t i = static_cast<std::size_t>(config.layers); i < layers; ++i) {
    if (config.compress_ratios[i] != 0) {
      text.fail(fmt::format("compress_ratios[{}]", i), "0 for a draft layer",
                fmt::format("{}", config.compress_ratios[i]));
    }
  }
}

void check_sources(const ModelConfig& config, const ConfigReader& text) {
  check_increasing(config.kv_source_layer_ids, text, "kv_source_layer_ids");
  check_increasing(config.index_source_layer_ids, text, "index_source_layer_ids");
  for (const int id : config.kv_source_layer_ids) {
    if (!contains(config.index_source_layer_ids, id)) {
      text.fail("kv_source_layer_ids",
                fmt::format("layer {} is no index source, as every KV source must be", id));
    }
  }
  for (const int id : config.index_source_layer_ids) {
    if (ratio(config, id) == 0) {
      text.fail("index_source_layer_ids",
                fmt::format("layer {} has compress_ratio 0 and can be no source", id));
    }
  }
  // Every KV source is an index source, so a layer that has a KV source has a selection made from its rows,
  // too.
  for (int layer = 0; layer < config.layers; ++layer) {
    if (ratio(config, layer) == 0) continue;
    const int source = source_of(config.kv_source_layer_ids, layer);
    if (source < 0 || ratio(config, source) != ratio(config, layer)) {
      text.fail("kv_source_layer_ids",
                fmt::format("layer {} has ratio {}, but {}", layer, ratio(config, layer),
                            source < 0 ? "no KV source at or before it"
                                       : fmt::format("its KV source, layer {}, has ratio {}", source,
                                                     ratio(config, source))));
    }
  }
}

void check_candidates(const ModelConfig& config, const ConfigReader& text) {
  const int source = config.candidate_source_layer_id;
  if (source < 0) return;
  if (!contains(config.kv_source_layer_ids, source)) {
    text.fail("candidate_source_layer_id", "-1, null or one of kv_source_layer_ids",
              fmt::format("{}", source));
  }
  if (config.candidate_topk_blocks % 4 != 0) {
    text.fail("candidate_topk_blocks", "a multiple of 4", fmt::format("{}", config.candidate_topk_blocks));
  }
  if (std::int64_t{config.candidate_topk_blocks} * config.candidate_block_size < config.index_topk) {
    text.fail("candidate_topk_blocks",
              fmt::format("{} blocks of {} rows hold fewer rows than index_topk, {}",
                          config.candidate_topk_blocks, config.candidate_block_size, config.index_topk));
  }
  for (const int id : config.index_source_layer_ids) {
    if (id > source && ratio(config, id) != ratio(config, source)) {
      text.fail(
          "candidate_source_layer_id",
          fmt::format(
              "index source {} chooses among the candidates of layer {}, but their ratios are {} and {}", id,
              source, ratio(config, id), ratio(config, source)));
    }
  }
}

void check_multiple(const ConfigReader& text, const char* name, int value, int of) {
  if (value % of != 0) text.fail(name, fmt::format("a multiple of {}", of), fmt::format("{}", value));
}

void check_product(const ConfigReader& text, const char* name, std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 24;
  if (a * b > kLargest) text.fail(name, fmt::format("{} times {} is more than {}", a, b, kLargest));
}

}  // namespace

void check_layer_schedule(const ModelConfig& config, const ConfigReader& text) {
  check_ratios(config, text);
  check_sources(config, text);
  check_candidates(config, text);
  check_increasing(config.draft.target_layer_ids, text, "dspark_target_layer_ids");
  check_increasing(config.engram.layer_ids, text, "engram_layer_ids");
}

void check_sizes(const ModelConfig& config, const ConfigReader& text) {
  constexpr int kScaleGroup = 32;  // columns that share a scale in every quantised matrix and cache row
  check_multiple(text, "hidden_size", config.hidden_size, kScaleGroup);
  check_multiple(text, "moe_intermediate_size", config.moe_intermediate_size, kScaleGroup);
  check_multiple(text, "q_lora_rank", config.q_lora_rank, kScaleGroup);
  check_multiple(text, "o_lora_rank", config.o_lora_rank, kScaleGroup);
  check_multiple(text, "head_dim", config.head_dim, kScaleGroup);
  check_multiple(text, "index_head_dim", config.index_head_dim, kScaleGroup);
  check_multiple(text, "engram_head_dim", config.engram.head_dim, kScaleGroup);
  check_multiple(text, "qk_rope_head_dim", config.rope_head_dim, 2);
  check_product(text, "head_dim", config.head_dim, config.heads);
  check_product(text, "o_lora_rank", config.o_lora_rank, config.o_groups);
  check_product(text, "index_head_dim", config.index_head_dim, config.index_heads);
  if (config.heads % config.o_groups != 0) {
    text.fail("o_groups", fmt::format("a divisor of num_attention_heads, {}", config.heads),
              fmt::format("{}", config.o_groups));
  }
  if (config.rope_head_dim > std::min(config.head_dim, config.index_head_dim)) {
    text.fail(
        "qk_rope_head_dim",
        fmt::format("at most head_dim, {}, and index_head_dim, {}", config.head_dim, config.index_head_dim),
        fmt::format("{}", config.rope_head_dim));
  }
  if (config.experts_per_token > config.routed_experts) {
    text.fail("num_experts_per_tok", fmt::format("at most n_routed_experts, {}", config.routed_experts),
              fmt::format("{}", config.experts_per_token));
  }
  if (config.draft.experts_per_token > config.draft.experts) {
    text.fail("dspark_num_experts_per_tok",
              fmt::format("at most dspark_n_routed_experts, {}", config.draft.experts),
              fmt::format("{}", config.draft.experts_per_token));
  }
  constexpr std::int64_t kMostExperts = std::int64_t{1} << 20;
  if (std::int64_t{config.layers} * config.routed_experts +
          std::int64_t{config.draft.layers} * config.draft.experts >
      kMostExperts) {
    text.fail("n_routed_experts", fmt::format("more than {} experts in all layers together", kMostExperts));
  }
}

void check_engram(const ModelConfig& config, const ConfigReader& text) {
  const EngramConfig& engram = config.engram;
  if (engram.rows.size() != engram.layer_ids.size()) {
    text.fail("engram_num_embeddings",
              fmt::format("{} entries, one a layer of engram_layer_ids", engram.layer_ids.size()),
              fmt::format("{}", engram.rows.size()));
  }
  if (engram.layer_ids.empty()) return;
  const std::int64_t columns = std::int64_t{engram.max_ngram_size - 1} * engram.heads;
  constexpr std::int64_t kMostColumns = 16384;
  if (columns * static_cast<std::int64_t>(engram.layer_ids.size()) > kMostColumns) {
    text.fail("engram_n_heads",
              fmt::format("more than {} hash columns in all layers together", kMostColumns));
  }
  const std::vector<EngramHash> hashes = engram_hash(engram);
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (hashes[i].rows != engram.rows[i]) {
      text.fail(fmt::format("engram_num_embeddings[{}]", i),
                fmt::format("{}, the sum of the {} primes of layer {}", hashes[i].rows, columns,
                            hashes[i].layer_id),
                fmt::format("{}", engram.rows[i]));
    }
  }
}

}  // namespace thalweg::checkpoint
