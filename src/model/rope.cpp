#include "model/rope.hpp"

#include <algorithm>
#include <numbers>

namespace thalweg::model {
namespace {

std::vector<float> powers(double base, int dim) {
  std::vector<float> frequencies(dim / 2);
  for (int i = 0; i < dim / 2; ++i) {
    // float32 steps, as in the released code: exponent, power, reciprocal.
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(dim);
    frequencies[i] = 1.0F / static_cast<float>(std::pow(base, static_cast<double>(exponent)));
  }
  return frequencies;
}

// Dimension whose wavelength makes `turns` turns over the original context.
double correction(double turns, int dim, double base, double original) {
  return dim * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
}

void stretch(std::vector<float>& frequencies, double base, const checkpoint::RopeScaling& scaling, int dim) {
  const auto original = static_cast<double>(scaling.original_max_position_embeddings);
  const double low = std::max(std::floor(correction(scaling.beta_fast, dim, base, original)), 0.0);
  const double high = std::min(std::ceil(correction(scaling.beta_slow, dim, base, original)), dim - 1.0);
  const auto span = static_cast<float>(std::max(high - low, 0.001));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const float ramp = std::clamp((static_cast<float>(i) - static_cast<float>(low)) / span, 0.0F, 1.0F);
    const float f = frequencies[i];
    frequencies[i] = f / static_cast<float>(scaling.factor) * ramp + f * (1.0F - ramp);
  }
}

}  // namespace

RopeFrequencies rope_frequencies(const checkpoint::ModelConfig& config) {
  RopeFrequencies result;
  result.plain = powers(config.rope_theta, config.rope_head_dim);
  result.compressed = powers(config.compress_rope_theta, config.rope_head_dim);
  stretch(result.compressed, config.compress_rope_theta, config.rope_scaling, config.rope_head_dim);
  return result;
}

}  // namespace thalweg::model
