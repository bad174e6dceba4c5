#include "backend/cpu/experts.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace thalweg::backend::cpu {
namespace {

float softplus(float z) {
  return z > 20.0F ? z : std::log1p(std::exp(z));
}

}  // namespace

void route(float* scores, std::size_t experts, const float* bias, std::size_t count, float scaling,
           std::int32_t* chosen, float* weights) {
  for (std::size_t e = 0; e < experts; ++e) scores[e] = std::sqrt(softplus(scores[e]));
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t best = experts;
    for (std::size_t e = 0; e < experts; ++e) {
      if (std::find(chosen, chosen + i, static_cast<std::int32_t>(e)) != chosen + i) continue;
      if (best == experts || scores[e] + bias[e] > scores[best] + bias[best]) best = e;
    }
    chosen[i] = static_cast<std::int32_t>(best);
    weights[i] = scores[best];
    sum += weights[i];
  }
  for (std::size_t i = 0; i < count; ++i) weights[i] = weights[i] / (sum + 1e-20F) * scaling;
}

void swiglu(float* gate, const float* up, std::size_t n, float limit, float weight) {
  for (std::size_t d = 0; d < n; ++d) {
    const float a = std::min(gate[d], limit);
    const float b = std::clamp(up[d], -limit, limit);
    gate[d] = weight * (a / (1.0F + std::exp(-a))) * b;
  }
}

void Experts::route_rows(const model::Layer& layer, std::size_t count, const model::StepRows& rows,
                         const Rows& x, model::Observer* observer) {
  const checkpoint::MoeWeights& weights = layer.weights->moe;
  const auto experts = static_cast<std::size_t>(weights.gate.rows);
  scores_.resize(rows.size(), experts);
  chosen_.resize(rows.size() * count);
  chosen_weights_.resize(rows.size() * count);
  linear_.run({Matrix(weights.gate), x.data(), x.width(), rows.size(), scores_.data(), experts});
  const auto scaling = static_cast<float>(context_.model.config().routed_scaling_factor);
  context_.pool.parallel_for(rows.size(), 8, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto& bias = rows.rows()[i].image ? weights.bias_vl : weights.bias;
      route(scores_.row(i), experts, bias.data(), count, scaling, chosen_.data() + i * count,
            chosen_weights_.data() + i * count);
    }
  });
  if (observer == nullptr) return;
  const std::vector<std::int64_t> ids(chosen_.begin(), chosen_.end());
  observer->integers(layer.plan.id, "gate_ids", ids, rows.size(), count);
  observer->floats(layer.plan.id, "gate_weights", chosen_weights_, rows.size(), {count});
}

// Sorts (row, expert) pairs by expert and gathers the inputs, so that each expert reads its weights once.
void Experts::group_rows(const model::Layer& layer, std::size_t count, const Rows& x, const float* inputs) {
  const std::size_t experts = layer.weights->moe.experts.size();
  expert_start_.assign(experts + 1, 0);
  for (const std::int32_t e : chosen_) ++expert_start_[e + 1];
  for (std::size_t e = 0; e < experts; ++e) expert_start_[e + 1] += expert_start_[e];
  place_.resize(chosen_.size());
  place_weights_.resize(chosen_.size());
  grouped_.resize(chosen_.size(), x.width());
  std::vector<std::size_t>& next = expert_start_;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    const std::size_t place = next[chosen_[i]]++;
    place_[i] = static_cast<std::int32_t>(place);
    place_weights_[place] = chosen_weights_[i];
    std::memcpy(grouped_.row(place), inputs + i / count * x.width(), x.width() * sizeof(float));
  }
  // Each start has moved to the next expert's start.
  for (std::size_t e = experts; e > 0; --e) expert_start_[e] = expert_start_[e - 1];
  expert_start_[0] = 0;
}

// The activation of every row, then as input of the down projection.
void Experts::activate(Rows& gate, const Rows& up, const std::vector<float>* weights, const float*& rounded,
                       Rows& copy) {
  const auto limit = static_cast<float>(context_.model.config().swiglu_limit);
  context_.pool.parallel_for(gate.rows(), 4, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      swiglu(gate.row(i), up.row(i), gate.width(), limit, weights != nullptr ? (*weights)[i] : 1.0F);
    }
  });
  rounded = linear_.quantised(gate, copy);
}

void Experts::combine(std::size_t count, Rows& o) {
  context_.pool.parallel_for(o.rows(), 4, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      float* out = o.row(i);  // holds the shared expert
      for (std::size_t k = 0; k < count; ++k) {
        const float* part = down_.row(place_[i * count + k]);
        for (std::size_t d = 0; d < o.width(); ++d) out[d] += part[d];
      }
    }
  });
}

void Experts::run(const model::Layer& layer, int experts_per_row, const model::StepRows& rows, const Rows& x,
                  Rows& o, model::Observer* observer) {
  const checkpoint::MoeWeights& weights = layer.weights->moe;
  const auto count = static_cast<std::size_t>(experts_per_row);
  const std::size_t width = x.width();
  const auto inner = static_cast<std::size_t>(weights.shared.w1.rows);
  route_rows(layer, count, rows, x, observer);
  const float* inputs = linear_.quantised(x, inputs_);
  group_rows(layer, count, x, inputs);
  gate_.resize(grouped_.rows(), inner);
  up_.resize(grouped_.rows(), inner);
  down_.resize(grouped_.rows(), width);
  shared_gate_.resize(rows.size(), inner);
  shared_up_.resize(rows.size(), inner);
  o.resize(rows.size(), width);

  products_.clear();
  products_.push_back({Matrix(weights.shared.w1), inputs, width, rows.size(), shared_gate_.data(), inner});
  products_.push_back({Matrix(weights.shared.w3), inputs, width, rows.size(), shared_up_.data(), inner});
  for (std::size_t e = 0; e < weights.experts.size(); ++e) {
    const std::size_t first = expert_start_[e];
    const std::size_t n = expert_start_[e + 1] - first;
    if (n == 0) continue;
    products_.push_back(
        {Matrix(weights.experts[e].w1), grouped_.row(first), width, n, gate_.row(first), inner});
    products_.push_back(
        {Matrix(weights.experts[e].w3), grouped_.row(first), width, n, up_.row(first), inner});
  }
  linear_.run(products_);

  const float* routed = nullptr;
  const float* shared = nullptr;
  activate(gate_, up_, &place_weights_, routed, rounded_);
  activate(shared_gate_, shared_up_, nullptr, shared, shared_rounded_);

  products_.clear();
  products_.push_back({Matrix(weights.shared.w2), shared, inner, rows.size(), o.data(), width});
  for (std::size_t e = 0; e < weights.experts.size(); ++e) {
    const std::size_t first = expert_start_[e];
    const std::size_t n = expert_start_[e + 1] - first;
    if (n == 0) continue;
    products_.push_back(
        {Matrix(weights.experts[e].w2), routed + first * inner, inner, n, down_.row(first), width});
  }
  linear_.run(products_);
  combine(count, o);
}

}  // namespace thalweg::backend::cpu
