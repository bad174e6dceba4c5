#include "bench/engine_bench.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace thalweg::bench {
namespace {

double seconds_since(engine::Clock::time_point begin) {
  return std::chrono::duration<double>(engine::Clock::now() - begin).count();
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double DecodeFigures::tokens_per_draw() const {
  const auto draws = static_cast<double>(statistics.draws);
  return draws > 0 ? 1 + static_cast<double>(statistics.drafts_accepted) / draws : 0;
}

DecodeFigures run_decode(const engine::LoadedModel& model, engine::EngineOptions options,
                         const std::vector<BenchPrompt>& prompts, const DecodeLoad& load) {
  options.sequences = load.requests;
  engine::Engine engine(model, options);
  std::string failure;
  const auto begin = engine::Clock::now();
  for (std::int32_t i = 0; i < load.answers; ++i) {
    engine::Request request;
    request.prompt = prompts[static_cast<std::size_t>(i) % prompts.size()].tokens;
    request.sampling.temperature = load.temperature;
    request.sampling.seed = static_cast<std::uint64_t>(i);
    request.sampling.max_tokens = load.max_tokens;
    request.sampling.ignore_eos = load.ignore_eos;
    engine.submit(std::move(request), [&failure](const engine::Event& event) {
      if (!event.error.empty()) failure = event.error;
    });
  }
  engine.drain();
  DecodeFigures figures;
  figures.seconds = seconds_since(begin);
  if (!failure.empty()) throw WorkError("bench decode: " + failure);
  figures.statistics = engine.statistics();
  figures.prompt_tokens = static_cast<std::int64_t>(figures.statistics.prompt_tokens);
  figures.output_tokens = static_cast<std::int64_t>(figures.statistics.output_tokens);
  return figures;
}

ResumeFigures run_resume(engine::Engine& engine, const std::vector<std::int32_t>& prompt) {
  ResumeFigures figures;
  for (double* seconds : {&figures.cold, &figures.resumed}) {
    engine::Request request;
    request.prompt = prompt;
    request.sampling.max_tokens = 1;
    request.sampling.ignore_eos = true;
    std::int64_t reused = 0;
    std::string failure;
    engine::Clock::time_point first;
    const auto begin = engine::Clock::now();
    engine.submit(std::move(request), [&](const engine::Event& event) {
      if (event.token) first = engine::Clock::now();
      reused = event.usage.reused_tokens;
      failure = event.error;
    });
    engine.drain();
    if (!failure.empty()) throw WorkError("bench prefix: " + failure);
    *seconds = std::chrono::duration<double>(first - begin).count();
    figures.reused_tokens = reused;
  }
  return figures;
}

}  // namespace thalweg::bench
