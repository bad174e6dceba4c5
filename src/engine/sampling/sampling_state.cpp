#include "engine/sampling/sampling_state.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace thalweg::engine {

SamplingState::SamplingState(const Sampler& sampler, std::span<const std::int32_t> prompt,
                             std::size_t reserve,
                             const std::shared_ptr<const grammar::CompiledGrammar>& grammar)
    : sampler_(sampler), counts_(prompt, sampler.params().has_penalties() ? reserve : 0) {
  if (grammar == nullptr) return;
  matcher_.emplace(grammar);
  mask_.resize(matcher_->mask_words());
}

std::int32_t SamplingState::draw(std::span<const float> logits, std::int64_t position,
                                 std::int64_t output_length, SamplerScratch& scratch,
                                 OutputLogprobs* logprobs) {
  RowContext context{.position = position, .output_length = output_length};
  if (params().has_penalties()) context.counts = &counts_;
  if (matcher_ && matcher_->fill_mask(mask_)) context.allowed = mask_;
  const std::int32_t token = sampler_.sample(logits, context, scratch, logprobs);
  if (matcher_ && !matcher_->accept(token)) {
    throw WorkError(
        fmt::format("grammar: token {} at position {} was allowed but does not match", token, position));
  }
  if (params().has_penalties()) counts_.append(token);
  ++drawn_;
  return token;
}

void SamplingState::rollback_to(std::size_t count) {
  const std::size_t back = drawn_ - count;
  if (params().has_penalties()) counts_.rollback(back);
  if (matcher_) matcher_->rollback(back);
  drawn_ = count;
}

}  // namespace thalweg::engine
