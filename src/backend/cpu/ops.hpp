// The operations of the walk (`model/forward.hpp`, `model/draft.hpp`) on the CPU, and the buffers between
// them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/attention.hpp"
#include "backend/cpu/cache_memory.hpp"
#include "backend/cpu/compressor.hpp"
#include "backend/cpu/context.hpp"
#include "backend/cpu/engram.hpp"
#include "backend/cpu/experts.hpp"
#include "backend/cpu/index_select.hpp"
#include "backend/cpu/linear.hpp"
#include "backend/cpu/mix.hpp"
#include "model/observer.hpp"
#include "model/step_rows.hpp"

namespace thalweg::backend::cpu {

/// One thread calls; the operations spread their work over the pool. Buffers grow to the largest step seen
/// and stay.
class Ops {
 public:
  Ops(const Context& context, CacheMemory& memory);
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
      take_draft(weights, s, step, choose(static_cast<std::int32_t>(s), step, draft_logits(s, step)));
    }
  }

  /// Logits of the last step, [logit rows, vocab]; of a draft pass, [sequences * block, vocab] with Markov
  /// terms.
  std::span<const float> logits(std::size_t row) const { return {logits_.row(row), logits_.width()}; }
  std::size_t logit_rows() const { return logits_.rows(); }
  std::span<const float> draft_logits(std::size_t sequence, int step) const {
    return logits(sequence * block_ + static_cast<std::size_t>(step));
  }
  /// Tokens and confidence logits of the last draft pass, [sequences, block].
  std::span<const std::int32_t> draft_tokens() const { return draft_tokens_; }
  std::span<const float> draft_confidence() const { return draft_confidence_; }

 private:
  void watch(int layer, const char* name, Rows& rows, std::initializer_list<std::size_t> shape);
  void watch(int layer, const char* site, const char* suffix, Rows& rows,
             std::initializer_list<std::size_t> shape);
  void rotate_rows(Rows& vectors, std::size_t width, bool inverse, bool compressed);
  void store_rows(const model::Layer& layer, const Rows& window);
  void normalise(Rows& rows, checkpoint::Bf16Vector weight);
  static void keep(Rows& rows, const std::vector<std::int32_t>& indices);
  void markov_logits(const checkpoint::DraftWeights& weights, int step);
  void take_draft(const checkpoint::DraftWeights& weights, std::size_t sequence, int step,
                  std::int32_t token);

  const Context& context_;
  CacheMemory& memory_;
  Linear linear_;
  Engram engram_;
  Compressor compressor_;
  IndexSelect index_;
  Attention attention_;
  Experts experts_;
  model::Observer* observer_ = nullptr;

  model::StepRows rows_;
  Rows h_;    // [rows, streams * hidden]
  Rows pre_;  // [rows, streams] carried collapse weights
  MixCoefficients mix_;
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
  std::vector<Product> output_products_;
  Rows grouped_rounded_;
  Rows features_;  // [rows, targets * hidden]
  Rows features_rounded_;
  Rows logits_;

  std::size_t draft_sequences_ = 0;
  std::size_t block_ = 0;
  std::vector<std::int32_t> draft_previous_;
  std::vector<std::int32_t> draft_tokens_;
  std::vector<float> draft_confidence_;
  Rows collapsed_;  // [sequences * block, hidden]
  Rows main_;       // projected features of the step's rows
  Rows main_rounded_;
  Rows markov_input_;
  Rows markov_output_;
};

}  // namespace thalweg::backend::cpu
