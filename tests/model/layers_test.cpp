// The schedule of the released configuration, layer by layer, and of configurations without some mechanisms.
#include "model/layers.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace thalweg::model {
namespace {

checkpoint::ModelConfig config(const char* file) {
  return checkpoint::load_config(std::filesystem::path(THALWEG_SOURCE_DIR) / file);
}

checkpoint::ModelConfig released() {
  return config("tests/data/released_config.json");
}

TEST(Layers, TheFirstTwoReleasedLayersSeeTheirWindowOnly) {
  const auto layers = plan_layers(released());
  ASSERT_EQ(layers.size(), 40U);
  for (int id = 0; id < 2; ++id) {
    EXPECT_EQ(layers[id].ratio, 0);
    EXPECT_EQ(layers[id].kv_source, -1);
    EXPECT_EQ(layers[id].index_source, -1);
    EXPECT_FALSE(layers[id].is_kv_source());
  }
}

TEST(Layers, ReleasedEncoderLayersReuseTheSourceBeforeThem) {
  const auto layers = plan_layers(released());
  for (int id = 2; id < 20; ++id) {
    const int source = id < 8 ? 2 : id < 14 ? 8 : 14;
    EXPECT_EQ(layers[id].ratio, 2) << id;
    EXPECT_FALSE(layers[id].decoder) << id;
    EXPECT_EQ(layers[id].kv_source, source) << id;
    EXPECT_EQ(layers[id].index_source, source) << id;
    EXPECT_FALSE(layers[id].makes_candidates || layers[id].uses_candidates) << id;
  }
}

TEST(Layers, ReleasedDecoderLayersShareOneCacheAndSelectEveryFourthTime) {
  EXPECT_EQ(first_decoder_layer(released()), 20);
  const auto layers = plan_layers(released());
  for (int id = 20; id < 40; ++id) {
    EXPECT_EQ(layers[id].ratio, 1) << id;
    EXPECT_TRUE(layers[id].decoder) << id;
    EXPECT_EQ(layers[id].kv_source, 20) << id;
    EXPECT_EQ(layers[id].index_source, id / 4 * 4) << id;
    EXPECT_EQ(layers[id].makes_candidates, id == 20) << id;
    EXPECT_EQ(layers[id].uses_candidates, id > 20 && id % 4 == 0) << id;
  }
}

TEST(Layers, EngramAndDraftFeaturesAreNumberedInTheirOwnOrder) {
  const auto layers = plan_layers(released());
  for (int id = 0; id < 40; ++id) {
    EXPECT_EQ(layers[id].engram, id == 1 ? 0 : id == 14 ? 1 : -1) << id;
    EXPECT_EQ(layers[id].draft_feature, id >= 37 ? id - 37 : -1) << id;
  }
}

TEST(Layers, AnIndexSourceNeedNotBeAKvSource) {
  const auto layers = plan_layers(config("models/mini/config.json"));
  EXPECT_EQ(layers[7].index_source, 7);
  EXPECT_EQ(layers[7].kv_source, 5);
  EXPECT_TRUE(layers[7].uses_candidates);
  EXPECT_EQ(layers[8].index_source, 7);
}

TEST(Layers, WithoutACandidateSourceNoLayerFiltersByCandidates) {
  auto released_config = released();
  released_config.candidate_source_layer_id = -1;
  for (const LayerPlan& layer : plan_layers(released_config)) {
    EXPECT_FALSE(layer.makes_candidates || layer.uses_candidates);
  }
}

TEST(Layers, WithoutADraftNoLayerKeepsFeatures) {
  auto released_config = released();
  released_config.draft.layers = 0;
  for (const LayerPlan& layer : plan_layers(released_config)) EXPECT_EQ(layer.draft_feature, -1);
}

TEST(Layers, WithoutRatioOneTheDecoderHalfIsEmpty) {
  auto released_config = released();
  released_config.compress_ratios.assign(released_config.compress_ratios.size(), 0);
  EXPECT_EQ(first_decoder_layer(released_config), 40);
}

}  // namespace
}  // namespace thalweg::model
