#include "backend/cuda/general/experts.hpp"

#include "backend/cuda/general/kernels.hpp"
#include "backend/cuda/router.hpp"

namespace thalweg::cuda::general {

void Experts::route_rows(const model::Layer& layer, int count, const StepArrays& arrays, const Rows& x,
                         model::Observer* observer) {
  const checkpoint::MoeWeights& weights = layer.weights->moe;
  const std::size_t places = x.rows() * count;
  multiply(weights_.of(weights.gate), x, logits_);
  RouterInput input;
  input.logits = logits_.data();
  input.rows = static_cast<int>(x.rows());
  input.experts = static_cast<int>(weights.gate.rows);
  input.bias = weights_.of(weights.bias);
  input.image_bias = weights.bias_vl.empty() ? input.bias : weights_.of(weights.bias_vl);
  input.image = arrays.image();
  input.chosen = count;
  input.scaling = static_cast<float>(model_.config().routed_scaling_factor);
  route(input, chosen_.reserve(places), chosen_weights_.reserve(places), nullptr);
  if (observer == nullptr) return;
  std::vector<std::int32_t> ids(places);
  std::vector<float> values(places);
  check(cudaMemcpy(ids.data(), chosen_.data(), places * 4, cudaMemcpyDeviceToHost), "copy from device");
  check(cudaMemcpy(values.data(), chosen_weights_.data(), places * 4, cudaMemcpyDeviceToHost),
        "copy from device");
  const std::vector<std::int64_t> wide(ids.begin(), ids.end());
  observer->integers(layer.plan.id, "gate_ids", wide, x.rows(), count);
  observer->floats(layer.plan.id, "gate_weights", values, x.rows(), {static_cast<std::size_t>(count)});
  check(cudaMemcpy(chosen_weights_.data(), values.data(), places * 4, cudaMemcpyHostToDevice),
        "copy to device");
}

void Experts::group_rows(int experts, std::size_t places, int count) {
  const ExpertGroups groups{starts_.reserve(experts + 1), pairs_.reserve(places), sources_.reserve(places),
                            place_of_.reserve(places)};
  group_by_expert(chosen_.data(), places, count, experts,
                  next_.reserve(2 * static_cast<std::size_t>(experts)), groups);
}

// The activation of every row, as input of the down projection.
void Experts::activate(const Rows& gate, const Rows& up, const std::int32_t* pairs) {
  const auto limit = static_cast<float>(model_.config().swiglu_limit);
  swiglu_rows(gate, up, limit, pairs, chosen_weights_.data());
  if (round_inputs_)
    round_rows(numeric::RowFormat::fp8_32, gate.data(), gate.rows(), gate.width(), gate.data());
}

void Experts::run(const model::Layer& layer, int count, const StepArrays& arrays, const Rows& x, Rows& o,
                  model::Observer* observer) {
  if (x.rows() == 0) {
    o.resize(0, x.width());
    return;
  }
  const checkpoint::MoeWeights& weights = layer.weights->moe;
  const auto experts = static_cast<int>(weights.experts.size());
  const std::size_t places = x.rows() * count;
  const auto inner = static_cast<std::size_t>(weights.experts[0].w1.rows);
  route_rows(layer, count, arrays, x, observer);
  group_rows(experts, places, count);
  const Rows* input = &x;
  if (round_inputs_) {
    inputs_.resize(x.rows(), x.width());
    round_rows(numeric::RowFormat::fp8_32, x.data(), x.rows(), x.width(), inputs_.data());
    input = &inputs_;
  }
  gate_.resize(places, inner);
  up_.resize(places, inner);
  down_.resize(places, x.width());
  const Matrix* table = weights_.experts(weights);
  const Matrix in_shape = weights_.of(weights.experts[0].w1);
  const Matrix out_shape = weights_.of(weights.experts[0].w2);
  multiply(ExpertProduct{table, 0, in_shape, experts, starts_.data(), sources_.data(), input->data(),
                         gate_.data()});
  multiply(
      ExpertProduct{table, 1, in_shape, experts, starts_.data(), sources_.data(), input->data(), up_.data()});
  activate(gate_, up_, pairs_.data());
  multiply(ExpertProduct{table, 2, out_shape, experts, starts_.data(), nullptr, gate_.data(), down_.data()});
  multiply(weights_.of(weights.shared.w1), *input, shared_gate_);
  multiply(weights_.of(weights.shared.w3), *input, shared_up_);
  activate(shared_gate_, shared_up_, nullptr);
  multiply(weights_.of(weights.shared.w2), shared_gate_, o);
  add_experts(down_, place_of_.data(), count, o);
}

}  // namespace thalweg::cuda::general
