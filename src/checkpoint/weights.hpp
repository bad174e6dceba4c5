// Typed views of a checkpoint's tensors, as the model uses them. Nothing here owns memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace thalweg::checkpoint {

/// A bfloat16 as stored: the upper half of a float's bits.
using Bf16Bits = std::uint16_t;

/// Linear weight [rows, cols] in BF16, y = x * W^T.
struct Bf16Matrix {
  const Bf16Bits* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

/// Linear weight [rows, cols] in E4M3 with one UE8M0 scale per 32x32 block; scales [ceil(rows/32),
/// ceil(cols/32)].
struct Fp8Matrix {
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* scales = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

/// Linear weight [rows, cols] in E2M1, two a byte (even column in the low nibble), one UE8M0 scale per row
/// and 32 columns: codes [rows, cols/2], scales [rows, cols/32].
struct Fp4Matrix {
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* scales = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

/// Lookup table [rows, cols] in E4M3 with one UE8M0 scale per row and 32 columns.
struct Fp8Table {
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* scales = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

using Bf16Vector = std::span<const Bf16Bits>;
using F32Vector = std::span<const float>;

/// mHC site: fn [ (2+s)*s, s*hidden ] row-major, base [(2+s)*s], scale [3], with s residual streams.
struct MixWeights {
  F32Vector fn;
  F32Vector base;
  F32Vector scale;
};

struct CompressorWeights {
  Bf16Matrix wkv;
  std::optional<Bf16Matrix> wgate;  ///< ratio 2 only
  Bf16Vector norm;
  Bf16Matrix index_wk;
  Bf16Vector index_k_norm;
};

struct IndexerWeights {
  Fp8Matrix wq_b;
  Bf16Matrix weights_proj;
};

struct AttentionWeights {
  Fp8Matrix wq_a;
  Bf16Vector q_norm;
  Fp8Matrix wq_b;
  Fp8Matrix wkv;
  Bf16Vector kv_norm;
  F32Vector sink;
  Fp8Matrix wo_a;
  Fp8Matrix wo_b;
  std::optional<CompressorWeights> compressor;  ///< KV-source layers
  std::optional<IndexerWeights> indexer;        ///< index-source layers
};

struct ExpertWeights {
  Fp4Matrix w1;  ///< gate
  Fp4Matrix w3;  ///< up
  Fp4Matrix w2;  ///< down
};

struct SharedExpertWeights {
  Fp8Matrix w1;
  Fp8Matrix w3;
  Fp8Matrix w2;
};

struct MoeWeights {
  Bf16Matrix gate;
  F32Vector bias;
  F32Vector bias_vl;  ///< used in place of `bias` for tokens of an image span
  SharedExpertWeights shared;
  std::vector<ExpertWeights> experts;
};

struct EngramWeights {
  Fp8Table embed;
  Fp8Matrix wkv;
  Bf16Matrix q_weight;  ///< [streams, hidden]
  Bf16Matrix k_weight;
};

struct LayerWeights {
  Bf16Vector attn_norm;
  Bf16Vector ffn_norm;
  MixWeights attn_mix;
  MixWeights ffn_mix;
  AttentionWeights attention;
  MoeWeights moe;
  std::optional<EngramWeights> engram;
};

struct DraftWeights {
  std::vector<LayerWeights> layers;
  Fp8Matrix main_proj;
  Bf16Vector main_norm;
  Bf16Vector norm;
  Bf16Matrix markov_embed;
  Bf16Matrix markov_head;
  Bf16Vector confidence;  ///< [hidden + markov_rank]
};

struct Weights {
  Bf16Matrix embed;
  Bf16Matrix head;
  Bf16Vector norm;
  std::vector<LayerWeights> layers;
  std::optional<DraftWeights> draft;
};

}  // namespace thalweg::checkpoint
