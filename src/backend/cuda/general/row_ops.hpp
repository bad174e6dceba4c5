// Operations that pass once over float32 rows: embedding, norm, rotary embedding, hyper-connections. All
// memory-bound.
#pragma once

#include <cstdint>

#include "backend/cuda/general/matrix.hpp"
#include "backend/cuda/general/rows.hpp"

namespace thalweg::cuda::general {

constexpr int kMaxStreams = 16;  ///< configurations have no more

/// h [rows, streams * width] = the embedding on every stream; pre [rows, streams] = the first stream alone.
void embed_rows(const Matrix& table, const std::int32_t* tokens, std::size_t rows, std::size_t streams,
                float* h, float* pre);
/// The tokens' rows of a bf16 table as floats.
void table_rows(const Matrix& table, const std::int32_t* tokens, std::size_t rows, float* out);

/// In place: x[i] = w[i] * x[i] * rsqrt(mean(x^2) + eps).
void norm_rows(const Rows& rows, const std::uint16_t* weight, float eps);

/// (cosine, sine) of every position and frequency, from the float32 angle: [count, frequencies].
void make_rotations(const std::int64_t* positions, std::size_t count, const float* frequencies, int pairs,
                    float2* out);
/// Rotates the last 2 * `pairs` channels of every `width` channels of every row, or back.
void rotate_rows(const Rows& rows, std::size_t width, const float2* rotations, int pairs, bool inverse);

/// target[i] = source[indices[i]] for whole rows.
void gather_rows(const float* source, const std::int32_t* indices, std::size_t count, std::size_t width,
                 float* target);

/// out[row, offset + d] = mean over the streams of h.
void mean_streams(const Rows& h, std::size_t streams, std::size_t offset, const Rows& out);
/// target[i * target_stride + d] += source[i, d].
void add_rows(const Rows& source, float* target, std::size_t target_stride);

/// x[row] = sum_i pre_i h_i.
void collapse_rows(const Rows& h, const Rows& pre, Rows& x);
/// h'_j = post_j o + sum_i comb[i][j] h_i; in place.
void expand_rows(const Rows& o, const Rows& post, const Rows& comb, const Rows& h);

struct MixRules {
  int streams = 0;
  int iterations = 0;
  float eps = 0;       ///< hc_eps
  float norm_eps = 0;  ///< rms_norm_eps
};
/// Coefficients of a sublayer (model specification, section 3.3) from the products of the streams with its
/// `fn`.
void mix_rows(const MixRules& rules, const Rows& h, const Rows& products, const float* scale,
              const float* base, float* pre, float* post, float* comb);

}  // namespace thalweg::cuda::general
