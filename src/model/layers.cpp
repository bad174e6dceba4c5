#include "model/layers.hpp"

#include <algorithm>

namespace thalweg::model {
namespace {

// Position of `id` in an ascending list, or -1.
int index_of(const std::vector<int>& ids, int id) {
  const auto found = std::find(ids.begin(), ids.end(), id);
  return found == ids.end() ? -1 : static_cast<int>(found - ids.begin());
}

// Nearest id in an ascending list that is not after `layer`, or -1.
int nearest(const std::vector<int>& ids, int layer) {
  const auto after = std::upper_bound(ids.begin(), ids.end(), layer);
  return after == ids.begin() ? -1 : *(after - 1);
}

}  // namespace

int first_decoder_layer(const checkpoint::ModelConfig& config) {
  for (int layer = 0; layer < config.layers; ++layer) {
    if (config.compress_ratios[layer] == 1) return layer;
  }
  return config.layers;
}

std::vector<LayerPlan> plan_layers(const checkpoint::ModelConfig& config) {
  const int border = first_decoder_layer(config);
  std::vector<LayerPlan> layers(config.layers);
  for (int id = 0; id < config.layers; ++id) {
    LayerPlan& layer = layers[id];
    layer.id = id;
    layer.ratio = config.compress_ratios[id];
    layer.decoder = id >= border;
    layer.engram = index_of(config.engram.layer_ids, id);
    layer.draft_feature = config.draft.layers > 0 ? index_of(config.draft.target_layer_ids, id) : -1;
    if (layer.ratio == 0) continue;
    layer.kv_source = nearest(config.kv_source_layer_ids, id);
    layer.index_source = nearest(config.index_source_layer_ids, id);
    if (config.candidate_source_layer_id < 0) continue;
    layer.makes_candidates = id == config.candidate_source_layer_id;
    layer.uses_candidates = layer.is_index_source() && id > config.candidate_source_layer_id &&
                            layer.kv_source == config.candidate_source_layer_id;
  }
  return layers;
}

}  // namespace thalweg::model
