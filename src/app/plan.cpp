// `thalweg plan`: what a model takes and what fits on given devices, from its configuration alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/commands.hpp"
#include "app/machine.hpp"
#include "app/model_option.hpp"
#include "app/plan_report.hpp"
#include "base/error.hpp"

namespace thalweg::app {
namespace {

constexpr double kGigabyte = 1e9;
constexpr double kGpuReserve = 4e9;     // driver context, libraries, communication buffers
constexpr double kHostReserve = 0.5e9;  // the program and its buffers

struct Options {
  std::string model;
  std::optional<int> gpus;
  double gpu_memory = 141;
  std::optional<double> host_memory;
  std::string engram = "host";
  std::optional<std::int64_t> context;
  std::optional<std::int64_t> sequences;
  std::int64_t batch_tokens = 8192;
  bool json = false;
  bool asked = false;  // a device set or a load was named: that none fits is a failure
};

// CLI11's range check lets a NaN through.
std::int64_t gigabytes(const char* option, double value) {
  if (!(value >= 0.001 && value <= 1e6)) {
    throw UsageError(
        fmt::format("{}: expected a number of GB from 0.001 to 1000000, found {:g}", option, value));
  }
  return std::llround(value * kGigabyte);
}

std::filesystem::path config_file(const std::string& given) {
  const auto path = model_directory(given);
  return std::filesystem::is_directory(path) ? path / "config.json" : path;
}

std::int64_t this_host_memory() {
  const Memory memory = this_memory();
  return static_cast<std::int64_t>(std::min(memory.total, memory.limit.value_or(memory.total)));
}

std::vector<model::DeviceSet> device_sets(const Options& options) {
  std::vector<int> counts = {0, 4, 8};
  if (options.gpus) counts = {*options.gpus};
  std::vector<model::DeviceSet> sets;
  for (const int gpus : counts) {
    model::DeviceSet set;
    set.gpus = gpus;
    set.gpu_memory = gigabytes("--gpu-memory", options.gpu_memory);
    if (options.host_memory) set.host_memory = gigabytes("--host-memory", *options.host_memory);
    if (gpus == 0 && !set.host_memory) set.host_memory = this_host_memory();
    set.engram_on_device = options.engram == "device";
    set.reserve = std::llround(gpus > 0 ? kGpuReserve : kHostReserve);
    sets.push_back(set);
  }
  return sets;
}

std::string set_name(const model::DeviceSet& set) {
  if (set.gpus == 0) return fmt::format("host with {} of memory", bytes_text(*set.host_memory));
  return fmt::format("{} GPU{} of {}, Engram tables in {} memory", set.gpus, set.gpus > 1 ? "s" : "",
                     bytes_text(set.gpu_memory), set.engram_on_device ? "GPU" : "host");
}

// Context lengths to show capacities for.
std::vector<std::int64_t> contexts(const Options& options, std::int64_t longest) {
  if (options.context) return {*options.context};
  std::vector<std::int64_t> lengths;
  for (const std::int64_t length : {4096, 32768, 131072}) {
    if (length < longest) lengths.push_back(length);
  }
  lengths.push_back(longest);
  return lengths;
}

SetReport report_set(const Options& options, const model::MemoryPlanner& planner,
                     const model::DeviceSet& devices) {
  SetReport report{.name = set_name(devices), .devices = devices, .load = {}, .plan = {}, .capacities = {}};
  const std::int64_t longest = planner.config().max_position_embeddings;
  if (options.sequences && !options.context) {
    const std::int64_t context = planner.longest_context(devices, *options.sequences, options.batch_tokens);
    if (context > 0) report.capacities.push_back({context, *options.sequences});
    report.load.context = context > 0 ? context : std::min<std::int64_t>(longest, 128);
  } else {
    for (const std::int64_t context : contexts(options, longest)) {
      report.capacities.push_back({context, planner.most_sequences(devices, context, options.batch_tokens)});
    }
    report.load.context = options.context.value_or(longest);
  }
  report.load.sequences = options.sequences.value_or(1);
  report.load.batch_tokens = options.batch_tokens;
  report.plan = planner.plan(devices, report.load);
  return report;
}

void run(const Options& options) {
  const auto file = config_file(options.model);
  const model::MemoryPlanner planner(checkpoint::load_config(file));
  const std::int64_t longest = planner.config().max_position_embeddings;
  if (options.context && *options.context > longest) {
    throw UsageError(
        fmt::format("--context: expected at most {}, the model's max_position_embeddings, found {}", longest,
                    *options.context));
  }
  PlanReport report{.model = file.string(), .sets = {}};
  for (const model::DeviceSet& devices : device_sets(options)) {
    report.sets.push_back(report_set(options, planner, devices));
  }
  const std::string text =
      options.json ? to_text(to_json(report, planner)) + "\n" : to_table(report, planner);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw WorkError("standard output: write failed");
  }
  if (options.asked && !report.any_fits()) {
    const SetReport& last = report.sets.back();
    throw WorkError(fmt::format("{}: {}", last.name, refusal_text(last)));
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "plan", "Say what a model takes and what fits on given devices, before any weight is read");
  add_model_option(*command, options->model)
      ->description("Checkpoint directory, or a config.json alone (default: the bundled models/mini)");
  std::vector<CLI::Option*> asking;
  asking.push_back(
      command->add_option("--gpus", options->gpus, "Number of GPUs; 0: the host alone (default: 0, 4 and 8)")
          ->type_name("N")
          ->check(CLI::Range(0, 65536).description("")));
  asking.push_back(
      command->add_option("--gpu-memory", options->gpu_memory, "Memory of each GPU in GB (default: 141)")
          ->type_name("GB"));
  asking.push_back(
      command
          ->add_option("--host-memory", options->host_memory,
                       "Memory of the host in GB (default: this machine's for the host alone; beside GPUs "
                       "not judged)")
          ->type_name("GB"));
  command
      ->add_option("--engram", options->engram,
                   "Memory for the Engram tables beside GPUs: host (the default) or device")
      ->type_name("host|device")
      ->check(CLI::IsMember({"host", "device"}).description(""));
  asking.push_back(
      command->add_option("--context", options->context, "Tokens a sequence (default: the model's longest)")
          ->type_name("N")
          ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31).description("")));
  asking.push_back(
      command
          ->add_option("--sequences", options->sequences,
                       "Sequences at once, over all GPUs; without --context the longest that fits is shown")
          ->type_name("N")
          ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20).description("")));
  asking.push_back(command
                       ->add_option("--batch-tokens", options->batch_tokens,
                                    "Rows that each device computes in one step (default: 8192)")
                       ->type_name("N")
                       ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20).description("")));
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options, asking] {
    options->asked =
        std::ranges::any_of(asking, [](const CLI::Option* option) { return option->count() > 0; });
    run(*options);
  });
}

}  // namespace thalweg::app
