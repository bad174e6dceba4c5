// `thalweg inspect checkpoint`: what a checkpoint directory holds, checked as loading checks it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "app/commands.hpp"
#include "app/model_option.hpp"
#include "app/progress.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/mapped_file.hpp"
#include "checkpoint/checkpoint.hpp"

namespace thalweg::app {
namespace {

using checkpoint::Checkpoint;
using checkpoint::TensorInfo;

Checkpoint load_with_progress(const std::filesystem::path& directory) {
  std::optional<Progress> progress;
  std::int64_t shown = 0;
  checkpoint::LoadOptions options;
  options.progress = [&](std::int64_t done, std::int64_t total) {
    if (!progress) progress.emplace("checking", "bytes", static_cast<std::uint64_t>(total));
    progress->advance(static_cast<std::uint64_t>(done - std::exchange(shown, done)));
  };
  Checkpoint loaded = Checkpoint::load(directory, options);
  if (progress) progress->finish();
  return loaded;
}

Json to_json(const Checkpoint& loaded) {
  const auto file = loaded.directory() / "config.json";
  Json tensors = Json::array();
  for (const TensorInfo& info : loaded.tensors()) {
    tensors.push_back({{"name", info.name},
                       {"dtype", checkpoint::dtype_name(info.dtype)},
                       {"shape", info.shape},
                       {"bytes", info.bytes}});
  }
  return {{"model", loaded.directory().string()},
          {"config", parse_json(read_text_file(file), file.string())},
          {"tensors", std::move(tensors)},
          {"totals", {{"tensors", loaded.tensors().size()}, {"bytes", loaded.total_bytes()}}}};
}

std::string to_table(const Checkpoint& loaded) {
  std::size_t width = 0;
  for (const TensorInfo& info : loaded.tensors()) width = std::max(width, info.name.size());
  std::string text;
  for (const TensorInfo& info : loaded.tensors()) {
    text += fmt::format("{:<{}}  {:<8}{:>14}  {}\n", info.name, width, checkpoint::dtype_name(info.dtype),
                        info.bytes, checkpoint::shape_text(info.shape));
  }
  const checkpoint::ModelConfig& config = loaded.config();
  text += fmt::format(
      "\nmodel    {}\nlayers   {} (hidden {}, {} heads of {}), {} draft, {} vision\nexperts  {} routed, {} a "
      "token\n"
      "Engram   layers [{}], rows [{}]\ntensors  {}\nbytes    {}\n",
      loaded.directory().string(), config.layers, config.hidden_size, config.heads, config.head_dim,
      config.draft.layers, config.vision.layers, config.routed_experts, config.experts_per_token,
      fmt::join(config.engram.layer_ids, ", "), fmt::join(config.engram.rows, ", "), loaded.tensors().size(),
      loaded.total_bytes());
  return text;
}

}  // namespace

void add_inspect_checkpoint(CLI::App& inspect) {
  struct Options {
    std::string model;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = inspect.add_subcommand(
      "checkpoint", "Check a checkpoint as loading would and list its configuration and tensors");
  add_model_option(*command, options->model);
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options] {
    const Checkpoint loaded = load_with_progress(model_directory(options->model));
    const std::string text = options->json ? to_text(to_json(loaded)) + "\n" : to_table(loaded);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
      throw WorkError("standard output: write failed");
    }
  });
}

}  // namespace thalweg::app
