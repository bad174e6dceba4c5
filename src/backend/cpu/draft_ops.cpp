// The operations that only the draft model has.
#include <cmath>
#include <cstring>

#include "backend/cpu/norm.hpp"
#include "backend/cpu/ops.hpp"

namespace thalweg::backend::cpu {

void Ops::project_features(const checkpoint::Fp8Matrix& projection, checkpoint::Bf16Vector norm) {
  watch(-1, "draft.features", features_, {features_.width()});
  main_.resize(rows_.size(), projection.rows);
  const float* features = linear_.quantised(features_, features_rounded_);
  linear_.run({Matrix(projection), features, features_.width(), rows_.size(), main_.data(), main_.width()});
  normalise(main_, norm);
  watch(-1, "draft.main_hidden", main_, {main_.width()});
}

void Ops::store_draft_context(const model::Layer& stage) {
  const checkpoint::AttentionWeights& weights = stage.weights->attention;
  const auto head_dim = static_cast<std::size_t>(weights.wkv.rows);
  const float* input = linear_.quantised(main_, main_rounded_);
  window_.resize(rows_.size(), head_dim);
  linear_.run({Matrix(weights.wkv), input, main_.width(), rows_.size(), window_.data(), head_dim});
  normalise(window_, weights.kv_norm);
  rotate_rows(window_, head_dim, false, false);
  store_rows(stage, window_);
}

// Adds the Markov term of the previous token to the logits of one position of every block.
void Ops::markov_logits(const checkpoint::DraftWeights& weights, int step) {
  const auto rank = static_cast<std::size_t>(weights.markov_embed.cols);
  const std::size_t vocab = logits_.width();
  markov_input_.resize(draft_sequences_, rank);
  markov_output_.resize(draft_sequences_, vocab);
  for (std::size_t s = 0; s < draft_sequences_; ++s) {
    const checkpoint::Bf16Bits* row =
        weights.markov_embed.data + draft_previous_[s] * weights.markov_embed.cols;
    for (std::size_t d = 0; d < rank; ++d) markov_input_.row(s)[d] = numeric::from_bf16(row[d]);
  }
  linear_.run({Matrix(weights.markov_head), markov_input_.data(), rank, draft_sequences_,
               markov_output_.data(), vocab});
  watch(-1, "draft.markov_logits", markov_output_, {vocab});
  for (std::size_t s = 0; s < draft_sequences_; ++s) {
    float* logits = logits_.row(s * block_ + static_cast<std::size_t>(step));
    for (std::size_t v = 0; v < vocab; ++v) logits[v] += markov_output_.row(s)[v];
  }
}

// Records the token of one position and its confidence logit: w . [collapsed state ; Markov embedding].
void Ops::take_draft(const checkpoint::DraftWeights& weights, std::size_t sequence, int step,
                     std::int32_t token) {
  const std::size_t at = sequence * block_ + static_cast<std::size_t>(step);
  const std::size_t width = collapsed_.width();
  float logit = 0;
  for (std::size_t d = 0; d < width; ++d)
    logit += numeric::from_bf16(weights.confidence[d]) * collapsed_.row(at)[d];
  for (std::size_t d = 0; d < markov_input_.width(); ++d) {
    logit += numeric::from_bf16(weights.confidence[width + d]) * markov_input_.row(sequence)[d];
  }
  draft_confidence_[at] = logit;
  draft_tokens_[at] = token;
  draft_previous_[sequence] = token;
}

}  // namespace thalweg::backend::cpu
