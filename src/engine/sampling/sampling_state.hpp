// What the tokens of one answer depend on besides logits and position: its penalties and its grammar.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/sampling/sampler.hpp"
#include "grammar/compiled_grammar.hpp"

namespace thalweg::engine {

/// Stands after the newest token drawn. Drafts are drawn ahead and then taken back together, whatever keeps
/// track of them. Made on the engine's thread, then touched by the device thread alone.
class SamplingState {
 public:
  /// `grammar` may be null: every token is allowed. `reserve`: output tokens without allocation for
  /// penalties.
  SamplingState(const Sampler& sampler, std::span<const std::int32_t> prompt, std::size_t reserve,
                const std::shared_ptr<const grammar::CompiledGrammar>& grammar = nullptr);

  const Sampler& sampler() const { return sampler_; }
  const SamplingParams& params() const { return sampler_.params(); }
  /// Draws the token at `position` from `logits` and stands after it. `output_length`: output tokens before
  /// it. Throws as Sampler::sample does; then it stands where it was.
  std::int32_t draw(std::span<const float> logits, std::int64_t position, std::int64_t output_length,
                    SamplerScratch& scratch, OutputLogprobs* logprobs = nullptr);
  /// Tokens drawn and not taken back.
  std::size_t drawn() const { return drawn_; }
  /// Takes back the last tokens, so that `count` are left.
  void rollback_to(std::size_t count);

 private:
  Sampler sampler_;
  TokenCounts counts_;
  std::optional<grammar::Matcher> matcher_;
  std::vector<std::uint32_t> mask_;
  std::size_t drawn_ = 0;
};

}  // namespace thalweg::engine
