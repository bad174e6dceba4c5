#include "app/engine_options.hpp"

#include "app/model_option.hpp"
#include "app/progress.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "engine/timeline.hpp"

namespace thalweg::app {

void add_engine_options(CLI::App& command, EngineOptions& options) {
  add_model_option(command, options.model);
  command.add_option("--backend", options.backend, "Device that computes: cpu or, in builds with CUDA, cuda")
      ->capture_default_str();
  command.add_option("--precision", options.precision, "Where values are rounded: reference, cache or float")
      ->capture_default_str();
  command.add_option("--threads", options.threads, "Threads (default: all processors of this process)")
      ->check(CLI::Range(1, 1024));
}

std::unique_ptr<engine::LoadedModel> load(const EngineOptions& options, const LoadProgress& watch) {
  backend::parse_device(options.backend);  // before the work of loading
  const std::filesystem::path directory = model_directory(options.model);
  std::unique_ptr<Progress> progress;
  std::int64_t shown = 0;
  checkpoint::LoadOptions load_options;
  load_options.threads = options.threads;
  load_options.progress = [&](std::int64_t done, std::int64_t total) {
    if (progress == nullptr) progress = std::make_unique<Progress>("checking weights", "bytes", total);
    progress->advance(done - shown);
    shown = done;
    if (watch) watch(done, total);
  };
  auto model = engine::load_model(directory, load_options);
  if (progress != nullptr) progress->finish();
  return model;
}

std::unique_ptr<backend::Backend> make_single_backend(const EngineOptions& options,
                                                      const engine::LoadedModel& model, std::int64_t tokens) {
  backend::BackendOptions backend_options;
  backend_options.device = backend::parse_device(options.backend);
  backend_options.precision = model::parse_precision(options.precision);
  backend_options.threads = options.threads;
  backend_options.pages = engine::pages_for(tokens);
  return backend::make_backend(model.model, backend_options);
}

std::int64_t replay_keep_of(const checkpoint::ModelConfig& config, std::int64_t asked) {
  const std::int64_t least = config.sliding_window + model::default_backtracking(config);
  const std::int64_t keep = asked > 0 ? asked : least + model::default_backtracking(config);
  if (keep >= least) return keep;
  throw UsageError("--replay-keep: expected at least " + std::to_string(least) +
                   " (window + backtracking), found " + std::to_string(keep));
}

std::vector<std::vector<std::int32_t>> read_prompts(const std::string& file,
                                                    const checkpoint::ModelConfig& config) {
  const Json root = parse_json(read_text_file(file), file);
  if (!root.is_object() || !root.contains("prompts") || !root["prompts"].is_array()) {
    throw InputError(file, "an object with a list \"prompts\"", root.is_object() ? "none" : root.type_name());
  }
  for (const auto& [name, value] : root.items()) {
    if (name != "prompts") throw InputError(file + ": " + name, "unknown member");
  }
  std::vector<std::vector<std::int32_t>> prompts;
  for (const Json& prompt : root["prompts"]) {
    const std::string subject = file + ": prompts[" + std::to_string(prompts.size()) + "]";
    if (!prompt.is_array() || prompt.empty())
      throw InputError(subject, "a list of token ids, not empty", to_text(prompt).substr(0, 40));
    std::vector<std::int32_t> ids;
    for (const Json& id : prompt) {
      const std::string at = subject + "[" + std::to_string(ids.size()) + "]";
      if (!id.is_number_integer() || id < 0 || id >= config.vocab_size) {
        throw InputError(at, "a token id below " + std::to_string(config.vocab_size),
                         to_text(id).substr(0, 40));
      }
      if (id == config.image_token_id)
        throw InputError(at, "text tokens only (images are not supported yet)", "the image token");
      ids.push_back(id.get<std::int32_t>());
    }
    if (static_cast<std::int64_t>(ids.size()) > config.max_position_embeddings) {
      throw InputError(
          subject,
          "at most " + std::to_string(config.max_position_embeddings) + " tokens (max_position_embeddings)",
          std::to_string(ids.size()));
    }
    prompts.push_back(std::move(ids));
  }
  return prompts;
}

}  // namespace thalweg::app
