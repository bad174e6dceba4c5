// After the forward pass of a step: draws tokens, verifies drafts and drafts anew. Part of the device's work.
#pragma once

#include <vector>

#include "backend/backend.hpp"
#include "engine/sampling/sampler.hpp"
#include "engine/step.hpp"

namespace thalweg::engine {

/// The target's token at a position depends on its logits, the seed and the position alone, and a draft is
/// drawn with the same noise from the draft model's logits. A draft is accepted exactly if it is the target's
/// token: speculation changes no output, at any temperature. One thread.
class TokenDrawer {
 public:
  explicit TokenDrawer(backend::Backend& backend);
  /// Fills the results of `step`, whose forward pass the backend has just run.
  void draw(Step& step);

 private:
  void verify(SampleTask& task);
  void draft(Step& step);
  std::int32_t draft_token(SampleTask& task, int step, std::span<const float> logits);

  backend::Backend& backend_;
  SamplerScratch scratch_;
  std::vector<model::DraftSequence> sequences_;
  std::vector<SampleTask*> drafting_;
  std::vector<std::size_t> drawn_before_;  // of their states, without the drafts
};

}  // namespace thalweg::engine
