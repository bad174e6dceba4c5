// The model, in the order of its specification (section 2). Prompt chunks, decode rows, verification and
// replay are the same walk over the rows of a plan; `Ops` computes each operation on one kind of device and
// keeps the buffers:
//
//   h     residual streams of every row            pre   collapse weights carried from the previous sublayer
//   x     collapsed and normed input of a sublayer  o     output of a sublayer
#pragma once

#include "model/model.hpp"
#include "model/step.hpp"

namespace thalweg::model {

/// Attention (section 3.4): keys are the row's sliding window and the selected entries of the compressed KV.
template <class Ops>
void attention(Ops& ops, const Layer& layer, bool border) {
  if (layer.plan.is_kv_source()) ops.compress(layer);  // 3.5: every row feeds the global cache
  if (border) ops.keep_decoder_rows();  // 6: from here on only rows whose decoder state is needed
  ops.project(layer);                   // q, and the row's own window record
  if (layer.plan.is_index_source())
    ops.select(layer);  // 3.6: top-k entries, kept for the layers that reuse them
  ops.attend(layer);
  ops.store_window(layer);
  ops.project_output(layer);
}

/// One step. Writes the caches of all rows and leaves the logits of `plan.logit_rows` with `ops`.
template <class Ops>
void forward(Ops& ops, const Model& model, const StepPlan& plan) {
  ops.begin(plan);
  ops.embed(model.weights().embed);  // h = the embedding on every stream, pre = the first stream alone
  for (const Layer& layer : model.layers()) {
    if (layer.plan.engram >= 0) ops.engram(layer);                // 3.2
    if (layer.plan.draft_feature >= 0) ops.draft_feature(layer);  // DSpark reads the input of this layer
    ops.mix(layer, layer.weights->attn_mix, "attn");              // 3.3: this sublayer's coefficients, from h
    ops.collapse(layer, layer.weights->attn_norm, "attn");        // x, with the carried pre
    attention(ops, layer, layer.plan.id == model.border());       // 3.4
    ops.expand(layer, "attn");                                    // h, and pre of this sublayer is carried on
    ops.mix(layer, layer.weights->ffn_mix, "ffn");
    ops.collapse(layer, layer.weights->ffn_norm, "ffn");
    ops.experts(layer, model.config().experts_per_token);  // 3.7
    ops.expand(layer, "ffn");
  }
  ops.keep_logit_rows();
  ops.final_norm(model.weights().norm);
  ops.head(model.weights().head);
}

}  // namespace thalweg::model
