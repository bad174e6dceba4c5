// A loaded model: weights and everything derived from the configuration that the forward pass needs.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/engram_hash.hpp"
#include "model/layers.hpp"
#include "model/precision.hpp"
#include "model/rope.hpp"

namespace thalweg::model {

/// One layer as the walk sees it: its place in the schedule and its weights.
struct Layer {
  LayerPlan plan;
  const checkpoint::LayerWeights* weights = nullptr;
};

/// Owns the checkpoint. Immutable and thread-safe to read once made.
class Model {
 public:
  /// `engram_vocabulary`: token id -> compressed id (`text::engram_vocabulary`), empty if the model has no
  /// Engram layers. Throws InputError naming what does not fit (number of classes, sizes this engine cannot
  /// compute).
  Model(checkpoint::Checkpoint checkpoint, std::vector<std::int32_t> engram_vocabulary);

  const checkpoint::ModelConfig& config() const { return checkpoint_.config(); }
  const checkpoint::Weights& weights() const { return checkpoint_.weights(); }
  const checkpoint::Checkpoint& checkpoint() const { return checkpoint_; }
  const std::vector<Layer>& layers() const { return layers_; }
  const std::vector<Layer>& draft_layers() const { return draft_layers_; }  ///< ids from `config().layers` on
  int border() const { return border_; }                                    ///< first decoder layer
  const RopeFrequencies& rope() const { return rope_; }
  const std::vector<checkpoint::EngramHash>& engram() const { return engram_; }
  const std::vector<std::int32_t>& engram_vocabulary() const { return engram_vocabulary_; }
  /// Tokens before the first row that a step must supply.
  int lookback() const { return engram_.empty() ? 0 : config().engram.max_ngram_size - 1; }

 private:
  checkpoint::Checkpoint checkpoint_;
  std::vector<std::int32_t> engram_vocabulary_;
  std::vector<Layer> layers_;
  std::vector<Layer> draft_layers_;
  int border_ = 0;
  RopeFrequencies rope_;
  std::vector<checkpoint::EngramHash> engram_;
};

}  // namespace thalweg::model
