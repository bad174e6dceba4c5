#include "backend/cpu/mix.hpp"

#include <algorithm>
#include <cmath>

namespace thalweg::backend::cpu {
namespace {

float sigmoid(float x) {
  return 1.0F / (1.0F + std::exp(-x));
}

void divide_by_column_sums(float* c, int streams, float eps) {
  for (int j = 0; j < streams; ++j) {
    float sum = 0;
    for (int i = 0; i < streams; ++i) sum += c[i * streams + j];
    for (int i = 0; i < streams; ++i) c[i * streams + j] /= sum + eps;
  }
}

void divide_by_row_sums(float* c, int streams, float eps) {
  for (int i = 0; i < streams; ++i) {
    float sum = 0;
    for (int j = 0; j < streams; ++j) sum += c[i * streams + j];
    for (int j = 0; j < streams; ++j) c[i * streams + j] /= sum + eps;
  }
}

void softmax_rows(const float* logits, int streams, float eps, float* c) {
  for (int i = 0; i < streams; ++i) {
    const float* row = logits + i * streams;
    const float largest = *std::max_element(row, row + streams);
    float sum = 0;
    for (int j = 0; j < streams; ++j) sum += c[i * streams + j] = std::exp(row[j] - largest);
    for (int j = 0; j < streams; ++j) c[i * streams + j] = c[i * streams + j] / sum + eps;
  }
}

constexpr std::size_t kPiece = 64;       // channels of all streams that are expanded at once
constexpr std::size_t kMaxStreams = 16;  // configurations have no more

// New values of `count` channels of every stream, from copies of the old ones: loops over channels, which
// compilers turn into vectors.
void expand_piece(const float* o, const float* post, const float* comb, std::size_t streams,
                  std::size_t count, std::size_t stride, float* h) {
  float old[kMaxStreams][kPiece];
  for (std::size_t i = 0; i < streams; ++i) std::copy_n(h + i * stride, count, old[i]);
  for (std::size_t j = 0; j < streams; ++j) {
    float sums[kPiece];
    for (std::size_t d = 0; d < count; ++d) sums[d] = post[j] * o[d];
    for (std::size_t i = 0; i < streams; ++i) {
      const float weight = comb[i * streams + j];
      for (std::size_t d = 0; d < count; ++d) sums[d] += weight * old[i][d];
    }
    std::copy_n(sums, count, h + j * stride);
  }
}

}  // namespace

void mix_row(const float* logits, int streams, int iterations, float eps, float* pre, float* post,
             float* comb) {
  for (int i = 0; i < streams; ++i) pre[i] = sigmoid(logits[i]) + eps;
  for (int i = 0; i < streams; ++i) post[i] = 2.0F * sigmoid(logits[streams + i]);
  softmax_rows(logits + 2 * streams, streams, eps, comb);
  divide_by_column_sums(comb, streams, eps);
  for (int i = 1; i < iterations; ++i) {
    divide_by_row_sums(comb, streams, eps);
    divide_by_column_sums(comb, streams, eps);
  }
}

void mix_coefficients(const Context& context, Linear& linear, const checkpoint::MixWeights& weights,
                      const Rows& h, Rows& products, MixCoefficients& out) {
  const auto& config = context.model.config();
  const int streams = config.hc_mult;
  const std::size_t count = weights.base.size();
  products.resize(h.rows(), count);
  out.pre.resize(h.rows(), streams);
  out.post.resize(h.rows(), streams);
  out.comb.resize(h.rows(), static_cast<std::size_t>(streams) * streams);
  linear.run(
      {Matrix(weights.fn.data(), count, h.width()), h.data(), h.width(), h.rows(), products.data(), count});
  context.pool.parallel_for(h.rows(), 4, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      const float mean = sum_of_squares(h.row(i), h.width()) / static_cast<float>(h.width());
      const float norm = 1.0F / std::sqrt(mean + static_cast<float>(config.rms_norm_eps));
      float* logits = products.row(i);
      for (std::size_t j = 0; j < count; ++j) {
        const std::size_t kind = std::min<std::size_t>(j / streams, 2);
        logits[j] = std::fma(logits[j] * norm, weights.scale[kind], weights.base[j]);
      }
      mix_row(logits, streams, config.hc_sinkhorn_iters, static_cast<float>(config.hc_eps), out.pre.row(i),
              out.post.row(i), out.comb.row(i));
    }
  });
}

void collapse(const Context& context, const Rows& h, const Rows& pre, Rows& x) {
  const std::size_t streams = pre.width();
  const std::size_t width = h.width() / streams;
  x.resize(h.rows(), width);
  context.pool.parallel_for(h.rows(), 4, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t i = begin; i < end; ++i) {
      float* out = x.row(i);
      std::fill(out, out + width, 0.0F);
      for (std::size_t s = 0; s < streams; ++s) {
        const float weight = pre.row(i)[s];
        const float* in = h.row(i) + s * width;
        for (std::size_t d = 0; d < width; ++d) out[d] += weight * in[d];
      }
    }
  });
}

void expand(const Context& context, const Rows& o, const MixCoefficients& mix, Rows& h) {
  const std::size_t streams = mix.post.width();
  const std::size_t width = o.width();
  context.pool.parallel_for(h.rows(), 4, [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t row = begin; row < end; ++row) {
      for (std::size_t d = 0; d < width; d += kPiece) {
        expand_piece(o.row(row) + d, mix.post.row(row), mix.comb.row(row), streams,
                     std::min(kPiece, width - d), width, h.row(row) + d);
      }
    }
  });
}

}  // namespace thalweg::backend::cpu
