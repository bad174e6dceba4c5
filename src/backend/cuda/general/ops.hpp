// The operations of the walk (`model/forward.hpp`, `model/draft.hpp`) on a CUDA device, and the buffers
// between them. Everything runs on the default stream; the host waits for logits, drafts and observers only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/general/attention.hpp"
#include "backend/cuda/general/cache_memory.hpp"
#include "backend/cuda/general/compressor.hpp"
#include "backend/cuda/general/engram.hpp"
#include "backend/cuda/general/experts.hpp"
#include "backend/cuda/general/index_select.hpp"
#include "backend/cuda/general/linear.hpp"
#include "backend/cuda/general/step_arrays.hpp"
#include "backend/cuda/general/weights.hpp"
#include "model/observer.hpp"
#include "model/step_rows.hpp"

namespace thalweg::cuda::general {

class Ops {
 public:
  Ops(const model::Model& model, const DeviceWeights& weights, const CacheMemory& memory, bool round_inputs);
  void observe(model::Observer* observer) { observer_ = observer; }

  // The walk, in its order.
  void begin(const model::StepPlan& plan);
  void embed(const checkpoint::Bf16Matrix& table);
  void engram(const model::Layer& layer);
  void draft_feature(const model::Layer& layer);
  void mix(const model::Layer& layer, const checkpoint::MixWeights& weights, const char* site);
  void collapse(const model::Layer& layer, checkpoint::Bf16Vector norm, const char* site);
  void compress(const model::Layer& layer);
  void keep_decoder_rows();
  void project(const model::Layer& layer);
  void select(const model::Layer& layer);
  void attend(const model::Layer& layer);
  void store_window(const model::Layer& layer);
  void project_output(const model::Layer& layer);
  void experts(const model::Layer& layer, int per_row);
  void expand(const model::Layer& layer, const char* site);
  void keep_logit_rows();
  void final_norm(checkpoint::Bf16Vector norm);
  void head(const checkpoint::Bf16Matrix& weight);

  // The draft.
  void project_features(const checkpoint::Fp8Matrix& projection, checkpoint::Bf16Vector norm);
  void store_draft_context(const model::Layer& stage);
  void begin_draft(std::span<const model::DraftSequence> sequences);
  template <class Choose>
  void markov_step(const checkpoint::DraftWeights& weights, int step, Choose&& choose) {
    markov_logits(weights, step);
    for (std::size_t s = 0; s < draft_sequences_; ++s) {
      const std::int32_t token = choose(static_cast<std::int32_t>(s), step, draft_logits(s));
      draft_tokens_[s * block_ + static_cast<std::size_t>(step)] = token;
      draft_previous_[s] = token;
    }
  }
  /// Copies what the draft pass has left to the host.
  void end_draft();

  /// Logits of the last step, [logit rows, vocab].
  std::span<const float> logits(std::size_t row) const {
    return {host_logits_.data() + row * logits_.width(), logits_.width()};
  }
  /// Tokens and confidence logits of the last draft pass, [sequences, block].
  std::span<const std::int32_t> draft_tokens() const { return draft_tokens_; }
  std::span<const float> draft_confidence() const { return draft_confidence_; }

 private:
  void watch(int layer, const char* name, Rows& rows, std::initializer_list<std::size_t> shape);
  void watch(int layer, const char* site, const char* suffix, Rows& rows,
             std::initializer_list<std::size_t> shape);
  const Rows& rounded(const Rows& source, Rows& copy);
  void normalise(const Rows& rows, checkpoint::Bf16Vector weight);
  void rotate(const Rows& rows, std::size_t width, bool inverse, bool compressed);
  void keep(Rows& rows, std::size_t count);
  void markov_logits(const checkpoint::DraftWeights& weights, int step);
  std::span<const float> draft_logits(std::size_t sequence) const {
    return {host_logits_.data() + sequence * logits_.width(), logits_.width()};
  }

  const model::Model& model_;
  const DeviceWeights& weights_;
  const CacheMemory& memory_;
  bool round_inputs_;
  Engram engram_;
  Compressor compressor_;
  IndexSelect index_;
  Attention attention_;
  Experts experts_;
  model::Observer* observer_ = nullptr;

  model::StepRows rows_;
  StepArrays arrays_;
  Buffer<std::int32_t> kept_;
  Rows spare_;
  Rows h_;    // [rows, streams * hidden]
  Rows pre_;  // [rows, streams] carried collapse weights
  Rows mix_pre_;
  Rows mix_post_;
  Rows mix_comb_;
  Rows mix_products_;
  Rows x_;  // [rows, hidden]
  Rows x_rounded_;
  Rows o_;  // [rows, hidden]
  Rows query_latent_;
  Rows query_rounded_;
  Rows q_;       // [rows, heads * head_dim]
  Rows window_;  // [rows, head_dim]
  Rows attended_;
  Rows attended_rounded_;
  Rows grouped_;  // [rows, groups * rank]
  Rows grouped_rounded_;
  Rows features_;  // [rows, targets * hidden]
  Rows features_rounded_;
  Rows logits_;
  std::vector<float> host_logits_;

  std::size_t draft_sequences_ = 0;
  std::size_t block_ = 0;
  std::vector<std::int32_t> draft_previous_;
  std::vector<std::int32_t> draft_tokens_;
  std::vector<float> draft_confidence_;
  Buffer<std::int32_t> previous_;
  Rows confidence_;  // [sequences, block]
  Rows collapsed_;   // [sequences * block, hidden]
  Rows main_;        // projected features of the step's rows
  Rows main_rounded_;
  Rows markov_input_;
  Rows markov_output_;
};

}  // namespace thalweg::cuda::general
