// The operations that only the draft model has.
#include "backend/cuda/general/kernels.hpp"
#include "backend/cuda/general/ops.hpp"
#include "backend/cuda/general/row_ops.hpp"

namespace thalweg::cuda::general {

void Ops::project_features(const checkpoint::Fp8Matrix& projection, checkpoint::Bf16Vector norm) {
  watch(-1, "draft.features", features_, {features_.width()});
  multiply(weights_.of(projection), rounded(features_, features_rounded_), main_);
  normalise(main_, norm);
  watch(-1, "draft.main_hidden", main_, {main_.width()});
}

void Ops::store_draft_context(const model::Layer& stage) {
  const checkpoint::AttentionWeights& weights = stage.weights->attention;
  multiply(weights_.of(weights.wkv), rounded(main_, main_rounded_), window_);
  normalise(window_, weights.kv_norm);
  rotate(window_, window_.width(), false, false);
  store_windows(memory_.windows(stage.plan.id), arrays_.rows(), window_);
}

void Ops::begin_draft(std::span<const model::DraftSequence> sequences) {
  const auto& draft = model_.config().draft;
  rows_.begin_draft(sequences, draft.block_size, draft.noise_token_id);
  arrays_.update(rows_);
  draft_sequences_ = sequences.size();
  draft_previous_.clear();
  for (const model::DraftSequence& sequence : sequences) draft_previous_.push_back(sequence.token);
  draft_tokens_.assign(rows_.size(), 0);
  confidence_.resize(sequences.size(), block_);
}

// Adds the Markov term of the previous token to the logits of one position of every block; copies them to the
// host.
void Ops::markov_logits(const checkpoint::DraftWeights& weights, int step) {
  const std::size_t vocab = logits_.width();
  previous_.upload(draft_previous_);
  markov_input_.resize(draft_sequences_, static_cast<std::size_t>(weights.markov_embed.cols));
  table_rows(weights_.of(weights.markov_embed), previous_.data(), draft_sequences_, markov_input_.data());
  multiply(weights_.of(weights.markov_head), markov_input_, markov_output_);
  watch(-1, "draft.markov_logits", markov_output_, {vocab});
  float* first = logits_.row(static_cast<std::size_t>(step));
  add_rows(markov_output_, first, block_ * vocab);
  general::draft_confidence(weights_.of(weights.confidence), collapsed_, markov_input_,
                            static_cast<int>(block_), step, confidence_.data());
  host_logits_.resize(draft_sequences_ * vocab);
  const std::size_t bytes = vocab * sizeof(float);
  check(cudaMemcpy2D(host_logits_.data(), bytes, first, block_ * bytes, bytes, draft_sequences_,
                     cudaMemcpyDeviceToHost),
        "copy draft logits");
}

void Ops::end_draft() {
  draft_confidence_ = confidence_.download();
}

}  // namespace thalweg::cuda::general
