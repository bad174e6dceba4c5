// What the engine does in a second: decoding at several loads and with several ways to speculate, and
// resuming a prompt from the cache.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.hpp"

namespace thalweg::bench {

struct BenchPrompt {
  std::string kind;
  std::vector<std::int32_t> tokens;
};

struct DecodeLoad {
  std::int32_t requests = 1;  ///< running at once
  std::int32_t answers = 16;  ///< in all; all wait from the beginning
  std::int64_t max_tokens = 128;
  bool ignore_eos = false;  ///< every answer has max_tokens
  double temperature = 0;
};

/// One run, from the first submission to the last token; loading and starting are not in it.
struct DecodeFigures {
  double seconds = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  engine::EngineStatistics statistics;
  double tokens_per_second() const { return static_cast<double>(output_tokens) / seconds; }
  /// Tokens that a sequence gets from a step on average: 1 without accepted drafts.
  double tokens_per_draw() const;
};

/// Runs the prompts in turn, as often as the load wants answers, on an engine of its own.
DecodeFigures run_decode(const engine::LoadedModel& model, engine::EngineOptions options,
                         const std::vector<BenchPrompt>& prompts, const DecodeLoad& load);

/// Times to the first token of one prompt, in seconds: cold, and again with its prefix in the cache.
struct ResumeFigures {
  double cold = 0;
  double resumed = 0;
  std::int64_t reused_tokens = 0;
};
ResumeFigures run_resume(engine::Engine& engine, const std::vector<std::int32_t>& prompt);

/// The middle one; of an even number the lower middle one. Not empty.
double median(std::vector<double> values);

}  // namespace thalweg::bench
