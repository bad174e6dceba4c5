// DSpark, the draft model (its specification, sections 2 to 4): context from the backbone's features, then
// one pass over a block of positions and a sequential Markov head.
#pragma once

#include <span>

#include "model/model.hpp"
#include "model/step.hpp"

namespace thalweg::model {

/// Section 3: the window records of every draft stage for the rows of the step just computed. All stages read
/// the same projected features.
template <class Ops>
void draft_context(Ops& ops, const Model& model) {
  ops.project_features(model.weights().draft->main_proj, model.weights().draft->main_norm);
  for (const Layer& stage : model.draft_layers()) ops.store_draft_context(stage);
}

/// Section 4: drafts `block_size` tokens for every sequence. `choose` picks a token from a row of draft
/// logits: int32 choose(sequence, step, span<const float> logits). Results stay with `ops`.
template <class Ops, class Choose>
void draft(Ops& ops, const Model& model, std::span<const DraftSequence> sequences, Choose&& choose) {
  const checkpoint::DraftWeights& weights = *model.weights().draft;
  ops.begin_draft(sequences);
  ops.embed(model.weights().embed);
  for (const Layer& stage : model.draft_layers()) {
    ops.mix(stage, stage.weights->attn_mix, "attn");
    ops.collapse(stage, stage.weights->attn_norm, "attn");
    ops.project(stage);
    ops.attend(stage);  // every row sees the window before the block and the whole block
    ops.store_window(stage);
    ops.project_output(stage);
    ops.expand(stage, "attn");
    ops.mix(stage, stage.weights->ffn_mix, "ffn");
    ops.collapse(stage, stage.weights->ffn_norm, "ffn");
    ops.experts(stage, model.config().draft.experts_per_token);
    ops.expand(stage, "ffn");
  }
  ops.final_norm(weights.norm);
  ops.head(model.weights().head);
  for (int step = 0; step < model.config().draft.block_size; ++step) {
    ops.markov_step(weights, step, choose);  // logits of position `step`, its token and its confidence
  }
}

}  // namespace thalweg::model
