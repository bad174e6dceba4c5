#include "backend/cuda/general/engram.hpp"

#include "backend/cuda/general/kernels.hpp"
#include "model/engram.hpp"
#include "numeric/block_formats.hpp"

namespace thalweg::cuda::general {

void Engram::gather(const model::Layer& layer, const model::StepRows& rows) {
  const checkpoint::Fp8Table& table = layer.weights->engram->embed;
  const std::size_t columns = model_.engram()[layer.plan.engram].primes.size();
  const auto width = static_cast<std::size_t>(table.cols);
  table_rows_.resize(rows.size() * columns);
  gathered_.resize(rows.size() * columns * width);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span<std::int64_t> at(table_rows_.data() + i * columns, columns);
    model::step_engram_rows(model_, layer.plan.engram, rows, i, at);
    for (std::size_t c = 0; c < columns; ++c) {
      numeric::unpack_row(numeric::RowFormat::fp8_32, table.codes + at[c] * table.cols,
                          table.scales + at[c] * (table.cols / 32),
                          {gathered_.data() + (i * columns + c) * width, width});
    }
  }
  embedded_.resize(rows.size(), columns * width);
  embedded_.upload(gathered_);
}

void Engram::run(const model::Layer& layer, const model::StepRows& rows, const StepArrays& arrays,
                 const Rows& h, model::Observer* observer) {
  const checkpoint::EngramWeights& weights = *layer.weights->engram;
  gather(layer, rows);
  if (observer != nullptr) {
    observer->integers(layer.plan.id, "engram_hash", table_rows_, rows.size(),
                       table_rows_.size() / rows.size());
  }
  if (round_inputs_) {
    round_rows(numeric::RowFormat::fp8_32, embedded_.data(), embedded_.rows(), embedded_.width(),
               embedded_.data());
  }
  multiply(weights_.of(weights.wkv), embedded_, kv_);
  update_streams({weights_.of(weights.q_weight), weights_.of(weights.k_weight),
                  static_cast<float>(model_.config().rms_norm_eps)},
                 kv_, arrays.image(), h);
}

}  // namespace thalweg::cuda::general
