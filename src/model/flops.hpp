// What a step of the backbone costs in arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/config.hpp"

namespace thalweg::model {

/// The sizes that the account depends on; the defaults are the released checkpoint's, but for `layers`. Names
/// follow `ModelConfig`.
struct FlopsShape {
  struct Layer {
    int ratio = 0;                 ///< tokens per compressed entry; 0: window only
    bool decoder = false;          ///< in the half that bounded replay cuts short
    bool kv_source = false;        ///< compresses KV and makes index keys
    bool index_source = false;     ///< scores and selects compressed entries
    bool uses_candidates = false;  ///< scores candidate blocks only
    bool engram = false;
    bool operator==(const Layer&) const = default;
  };

  std::int64_t vocab_size = 129280;
  std::int64_t hidden_size = 5120;
  std::int64_t heads = 64;
  std::int64_t head_dim = 512;
  std::int64_t q_lora_rank = 1280;
  std::int64_t o_lora_rank = 1024;
  std::int64_t o_groups = 8;
  std::int64_t sliding_window = 128;
  std::int64_t index_heads = 32;
  std::int64_t index_head_dim = 128;
  std::int64_t index_topk = 512;
  std::int64_t candidate_topk_blocks = 2048;
  std::int64_t candidate_block_size = 8;
  std::int64_t moe_intermediate_size = 2304;
  std::int64_t routed_experts = 384;
  std::int64_t experts_per_token = 6;
  std::int64_t hc_mult = 4;
  std::int64_t engram_width = 6144;  ///< (max_ngram_size - 1) * heads * head_dim
  std::vector<Layer> layers;

  bool operator==(const FlopsShape&) const = default;
};

/// The released DeepSeek-V4.1-Flash.
FlopsShape released_flops_shape();
FlopsShape flops_shape(const checkpoint::ModelConfig& config);

/// How a prompt's rows go through the decoder half: all of them; all, with windows narrowed to the kept tail;
/// the kept tail alone.
enum class FlopsReplay { off, mask, compact };

/// One sequence's part of a step: rows at positions [context - rows, context).
struct FlopsStep {
  std::int64_t rows = 1;     ///< at least 1
  std::int64_t context = 1;  ///< positions after the step, at least `rows`
  bool prompt = false;  ///< a prompt chunk (one row of logits); else decode or verify (logits for every row)
  std::int64_t prompt_length = 0;  ///< whole prompt; read for prompts with replay only
  FlopsReplay replay = FlopsReplay::off;
  std::int64_t keep = 0;          ///< tail positions of the prompt that the decoder half keeps
  std::int64_t window_start = 0;  ///< first position with valid window state: no window reaches below it
};

/// In units of FP8-equivalent operations.
struct Flops {
  std::int64_t attention = 0;  ///< projections, compressor, indexer and attention core
  std::int64_t total = 0;
};

/// Every multiply-add counts 1 (FP4 x FP4), 2 (FP8), 4 (BF16) or 8 (FP32, TF32). Backbone only: no draft
/// model, vision, norms, padding or expert replicas. With `compact` replay the decoder half counts kept rows
/// alone (one at least), but for what makes the first decoder layer's compressed KV and for that layer's
/// first mixing. Exact up to 2^24 positions of context. Source: the published engine's account (DeepInfer
/// 0.1.0).
Flops count_flops(const FlopsShape& shape, const FlopsStep& step);

}  // namespace thalweg::model
