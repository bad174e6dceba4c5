// The layer schedule: what each layer of a configuration does and from whom it takes compressed KV, selection
// and rotary embedding (model specification, section 1, "Layer table").
#pragma once

#include <vector>

#include "checkpoint/config.hpp"

namespace thalweg::model {

/// One backbone layer's place in the schedule. Layer ids count from 0; -1 means none.
struct LayerPlan {
  int id = 0;
  int ratio = 0;         ///< tokens per compressed entry; 0: window only
  bool decoder = false;  ///< in the decoder half (from the first ratio-1 layer on)
  int kv_source =
      -1;  ///< layer whose compressed KV (and index keys) this layer attends to; itself for a source
  int index_source = -1;  ///< layer whose top-k selection this layer uses; itself for an index source
  bool makes_candidates = false;
  bool uses_candidates = false;
  int engram = -1;         ///< index into the Engram tables
  int draft_feature = -1;  ///< which DSpark target feature is the input of this layer

  bool is_kv_source() const { return kv_source == id; }
  bool is_index_source() const { return index_source == id; }
};

/// The schedule of all backbone layers. The configuration is valid, so this cannot fail.
std::vector<LayerPlan> plan_layers(const checkpoint::ModelConfig& config);

/// First layer of the decoder half; `config.layers` if no layer has ratio 1.
int first_decoder_layer(const checkpoint::ModelConfig& config);

}  // namespace thalweg::model
