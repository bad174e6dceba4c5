#include "backend/cpu/engram.hpp"

#include <algorithm>
#include <cmath>

#include "model/engram.hpp"
#include "numeric/block_formats.hpp"

namespace thalweg::backend::cpu {

void Engram::gather(const model::Layer& layer, const model::StepRows& rows) {
  const auto& hash = context_.model.engram()[layer.plan.engram];
  const checkpoint::Fp8Table& table = layer.weights->engram->embed;
  const std::size_t columns = hash.primes.size();
  const auto dim = static_cast<std::size_t>(table.cols);
  table_rows_.resize(rows.size() * columns);
  embedded_.resize(rows.size(), columns * dim);
  context_.pool.parallel_for(rows.size(), 4, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      std::int64_t* at = table_rows_.data() + i * columns;
      model::step_engram_rows(context_.model, layer.plan.engram, rows, i, {at, columns});
      for (std::size_t c = 0; c < columns; ++c) {
        numeric::unpack_row(numeric::RowFormat::fp8_32, table.codes + at[c] * table.cols,
                            table.scales + at[c] * (table.cols / 32), {embedded_.row(i) + c * dim, dim});
      }
    }
  });
}

// h_i += g_i v, with a gate from the agreement of the stream with its key.
void Engram::update(const checkpoint::EngramWeights& weights, const float* kv, float* h) {
  const auto streams = static_cast<std::size_t>(weights.q_weight.rows);
  const auto width = static_cast<std::size_t>(weights.q_weight.cols);
  const auto eps = static_cast<float>(context_.model.config().rms_norm_eps);
  const float* value = kv + streams * width;
  for (std::size_t s = 0; s < streams; ++s) {
    float* stream = h + s * width;
    const float* key = kv + s * width;
    const checkpoint::Bf16Bits* qw = weights.q_weight.data + s * width;
    const checkpoint::Bf16Bits* kw = weights.k_weight.data + s * width;
    float sums[32] = {};
    for (std::size_t d = 0; d < width; d += 32) {
      for (std::size_t k = 0; k < 32; ++k) {
        const float weight = numeric::from_bf16(qw[d + k]) * numeric::from_bf16(kw[d + k]);
        sums[k] += stream[d + k] * weight * key[d + k];
      }
    }
    float dot = 0;
    for (const float sum : sums) dot += sum;
    const auto n = static_cast<float>(width);
    dot /= std::sqrt(sum_of_squares(stream, width) / n + eps);
    dot /= std::sqrt(sum_of_squares(key, width) / n + eps);
    dot /= std::sqrt(n);
    const float gate =
        1.0F / (1.0F + std::exp(-std::copysign(std::sqrt(std::max(std::fabs(dot), 1e-6F)), dot)));
    for (std::size_t d = 0; d < width; ++d) stream[d] = stream[d] + gate * value[d];
  }
}

void Engram::run(const model::Layer& layer, const model::StepRows& rows, Rows& h, model::Observer* observer) {
  const checkpoint::EngramWeights& weights = *layer.weights->engram;
  gather(layer, rows);
  if (observer != nullptr) {
    observer->integers(layer.plan.id, "engram_hash", table_rows_, rows.size(),
                       table_rows_.size() / rows.size());
  }
  kv_.resize(rows.size(), weights.wkv.rows);
  const float* input = linear_.quantised(embedded_, rounded_);
  linear_.run({Matrix(weights.wkv), input, embedded_.width(), rows.size(), kv_.data(), kv_.width()});
  context_.pool.parallel_for(rows.size(), 2, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      if (!rows.rows()[i].image) update(weights, kv_.row(i), h.row(i));
    }
  });
}

}  // namespace thalweg::backend::cpu
