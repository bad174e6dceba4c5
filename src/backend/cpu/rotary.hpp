// Rotary embedding of the last channels of a vector, adjacent pairs (model specification, section 3.1).
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "model/rope.hpp"

namespace thalweg::backend::cpu {

/// Cosines and sines of one position, made accurately from the float32 angle.
class Rotation {
 public:
  Rotation(std::int64_t position, std::span<const float> frequencies) { set(position, frequencies); }
  Rotation() = default;
  void set(std::int64_t position, std::span<const float> frequencies) {
    cosine_.resize(frequencies.size());
    sine_.resize(frequencies.size());
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const double angle = model::rope_angle(position, frequencies[i]);
      cosine_[i] = static_cast<float>(std::cos(angle));
      sine_[i] = static_cast<float>(std::sin(angle));
    }
  }

  /// Rotates the last 2 * frequencies channels of `x` (of `n`).
  void apply(float* x, std::size_t n) const { turn(x + n - 2 * cosine_.size(), 1.0F); }
  /// The inverse rotation.
  void undo(float* x, std::size_t n) const { turn(x + n - 2 * cosine_.size(), -1.0F); }

 private:
  void turn(float* x, float sign) const {
    for (std::size_t i = 0; i < cosine_.size(); ++i) {
      const float u = x[2 * i];
      const float v = x[2 * i + 1];
      const float s = sign * sine_[i];
      x[2 * i] = u * cosine_[i] - v * s;
      x[2 * i + 1] = u * s + v * cosine_[i];
    }
  }

  std::vector<float> cosine_;
  std::vector<float> sine_;
};

}  // namespace thalweg::backend::cpu
