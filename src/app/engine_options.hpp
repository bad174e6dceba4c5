// Options shared by the commands that run a model, and what they make of them.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "engine/loaded_model.hpp"

namespace thalweg::app {

/// `--model --backend --precision --threads`, as given.
struct EngineOptions {
  std::string model;
  std::string backend = "cpu";
  std::string precision = "reference";
  std::size_t threads = 0;
};

void add_engine_options(CLI::App& command, EngineOptions& options);

/// Hears of bytes done and of their total.
using LoadProgress = std::function<void(std::int64_t done, std::int64_t total)>;

/// Loads the model with progress on stderr, and to `watch` if given. Throws UsageError for a backend that
/// this program lacks.
std::unique_ptr<engine::LoadedModel> load(const EngineOptions& options, const LoadProgress& watch = {});

/// A backend for one sequence at a time of up to `tokens` positions.
std::unique_ptr<backend::Backend> make_single_backend(const EngineOptions& options,
                                                      const engine::LoadedModel& model, std::int64_t tokens);

/// Tokens that bounded replay keeps of a prompt: what was asked for, or if that is 0 window + 2 x
/// backtracking. Throws UsageError if it is less than window + backtracking.
std::int64_t replay_keep_of(const checkpoint::ModelConfig& config, std::int64_t asked);

/// The prompts of a file `{"prompts": [[ids...], ...]}`. Throws InputError naming file and element; ids must
/// lie in [0, vocab_size).
std::vector<std::vector<std::int32_t>> read_prompts(const std::string& file,
                                                    const checkpoint::ModelConfig& config);

}  // namespace thalweg::app
