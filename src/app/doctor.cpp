#include "app/doctor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <system_error>

#include "app/model_option.hpp"
#include "base/error.hpp"

namespace thalweg::app {
namespace {

namespace fs = std::filesystem;

std::string gibibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(1ULL << 30));
}

ModelDirectory look_at_model(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) throw InputError(path.string(), "expected a checkpoint directory");
  ModelDirectory model;
  model.path = path;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    const std::uintmax_t bytes =
        entry->path().extension() == ".safetensors" ? entry->file_size(unreadable) : 0;
    if (!unreadable) model.weight_bytes += bytes;
  }
  if (error) throw InputError(path.string(), "cannot be listed: " + error.message());
  if (const fs::space_info space = fs::space(path, error); !error) model.free_bytes = space.available;
  model.disk = measure_disk_speed(path);
  return model;
}

/// The memory this process may really use.
std::uint64_t usable_memory(const Memory& memory) {
  return std::min(memory.available, memory.limit.value_or(memory.available));
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json to_json(const Processor& processor) {
  return {{"model", text_or_null(processor.model)}, {"cores", processor.cores},
          {"threads", processor.threads},           {"usable_threads", processor.usable},
          {"quota", or_null(processor.quota)},      {"features", processor.features},
          {"simd_target", processor.simd_target}};
}

Json to_json(const GpuSystem& system) {
  Json gpus = Json::array();
  for (const Gpu& gpu : system.gpus) {
    gpus.push_back({{"name", gpu.name},
                    {"compute_capability", fmt::format("{}.{}", gpu.major, gpu.minor)},
                    {"memory_bytes", gpu.memory}});
  }
  return {{"gpus", std::move(gpus)},
          {"driver", text_or_null(system.driver)},
          {"cuda", text_or_null(system.cuda)},
          {"problem", text_or_null(system.problem)}};
}

Json to_json(const std::optional<ModelDirectory>& model) {
  if (!model) return nullptr;
  Json disk;
  if (model->disk) {
    disk = {{"file", model->disk->file.filename().string()},
            {"bytes_read", model->disk->bytes},
            {"bytes_per_second", model->disk->bytes_per_second()},
            {"past_page_cache", model->disk->past_page_cache}};
  }
  return {{"path", model->path.string()},
          {"weight_bytes", model->weight_bytes},
          {"free_disk_bytes", model->free_bytes},
          {"disk", std::move(disk)}};
}

/// Lines "name  value", the value of a second line standing below the first.
class Table {
 public:
  void row(std::string_view name, std::string_view value) { text_ += fmt::format("{:<11}{}\n", name, value); }
  void feature(const Feature& feature) {
    std::string state = feature.in_build ? "ready" : "not in this build";
    if (!feature.missing.empty()) {
      state = fmt::format("{}missing here: {}", feature.in_build ? "" : "not in this build; ",
                          fmt::join(feature.missing, "; "));
    }
    text_ += fmt::format("  {:<28}{}\n", feature.name, state);
  }
  void line(std::string_view text) { text_ += fmt::format("{}\n", text); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void add_processor(Table& table, const Processor& processor) {
  table.row("processor", processor.model.empty() ? "model not reported" : processor.model);
  std::string count = processor.cores > 0 ? fmt::format("{} cores, ", processor.cores) : "";
  count += fmt::format("{} hardware threads, {} usable", processor.threads, processor.usable);
  if (processor.quota) count += fmt::format(", limited to the time of {:g}", *processor.quota);
  table.row("", count);
  table.row("", processor.features.empty() ? "no vector extensions reported"
                                           : fmt::format("{}", fmt::join(processor.features, " ")));
  table.row("", fmt::format("kernels run as {}", processor.simd_target));
}

void add_gpus(Table& table, const GpuSystem& system) {
  if (system.gpus.empty()) table.row("gpu", system.problem);
  for (const Gpu& gpu : system.gpus) {
    table.row(&gpu == system.gpus.data() ? "gpu" : "",
              fmt::format("{}, {}, compute capability {}.{}", gpu.name, gibibytes(gpu.memory), gpu.major,
                          gpu.minor));
  }
  if (!system.cuda.empty()) {
    table.row("driver",
              fmt::format("{}, takes CUDA up to {}",
                          system.driver.empty() ? "version not reported" : system.driver, system.cuda));
  }
}

void add_model(Table& table, const ModelDirectory& model) {
  table.row("model", model.path.string());
  table.row("", fmt::format("{:.1f} MB of weights, {} free on the disk",
                            static_cast<double>(model.weight_bytes) / 1e6, gibibytes(model.free_bytes)));
  if (!model.disk) {
    table.row("disk", "no file to measure with");
    return;
  }
  table.row("disk",
            fmt::format("{:.0f} MB/s reading {}, {:.1f} MB in {:.2f} s{}",
                        model.disk->bytes_per_second() / 1e6, model.disk->file.filename().string(),
                        static_cast<double>(model.disk->bytes) / 1e6, model.disk->seconds,
                        model.disk->past_page_cache ? "" : " (pages may have been in memory already)"));
}

}  // namespace

Diagnosis examine_machine(const std::optional<fs::path>& model) {
  Diagnosis diagnosis;
  if (model) diagnosis.model = look_at_model(*model);
  diagnosis.processor = this_processor();
  diagnosis.memory = this_memory();
  diagnosis.open_files = open_file_limit();
  diagnosis.gpu = find_gpus();
  diagnosis.nccl = nccl_version();
  diagnosis.mpi = mpi_version();
  diagnosis.ucx = ucx_version();
  diagnosis.rdma = rdma_devices();
  return diagnosis;
}

std::vector<Feature> judge_features(const Diagnosis& diagnosis) {
  Feature cpu{.name = "inference on the CPU", .in_build = true, .missing = {}};
  const std::uint64_t memory = usable_memory(diagnosis.memory);
  if (diagnosis.model && diagnosis.model->weight_bytes > memory) {
    cpu.missing.push_back(fmt::format("memory for the weights: {} are larger than {}",
                                      gibibytes(diagnosis.model->weight_bytes), gibibytes(memory)));
  }
  Feature gpu{.name = "inference on NVIDIA GPUs", .in_build = false, .missing = {}};
  if (diagnosis.gpu.gpus.empty()) gpu.missing.push_back(diagnosis.gpu.problem);
  Feature gpu_ranks{.name = "ranks on several GPUs", .in_build = false, .missing = {}};
  if (diagnosis.gpu.gpus.size() < 2) gpu_ranks.missing.emplace_back("a second GPU");
  if (!diagnosis.nccl) gpu_ranks.missing.emplace_back("NCCL (libnccl.so.2)");
  Feature cpu_ranks{.name = "ranks on CPUs", .in_build = false, .missing = {}};
  if (!diagnosis.mpi) cpu_ranks.missing.emplace_back("MPI (libmpi.so.40 or libmpi.so.12)");
  Feature transfer{.name = "KV transfer over RDMA", .in_build = false, .missing = {}};
  if (diagnosis.rdma.empty()) transfer.missing.emplace_back("an RDMA device");
  if (!diagnosis.ucx) transfer.missing.emplace_back("UCX (libucp.so.0)");
  Feature service{.name = "HTTP service", .in_build = true, .missing = {}};
  return {cpu, gpu, gpu_ranks, cpu_ranks, transfer, service};
}

Json to_json(const Diagnosis& diagnosis) {
  Json features = Json::array();
  for (const Feature& feature : judge_features(diagnosis)) {
    features.push_back({{"name", feature.name},
                        {"in_build", feature.in_build},
                        {"ready", feature.in_build && feature.missing.empty()},
                        {"missing", feature.missing}});
  }
  return {{"processor", to_json(diagnosis.processor)},
          {"memory",
           {{"total_bytes", diagnosis.memory.total},
            {"available_bytes", diagnosis.memory.available},
            {"limit_bytes", or_null(diagnosis.memory.limit)}}},
          {"open_files", diagnosis.open_files},
          {"nvidia", to_json(diagnosis.gpu)},
          {"nccl", or_null(diagnosis.nccl)},
          {"mpi", or_null(diagnosis.mpi)},
          {"ucx", or_null(diagnosis.ucx)},
          {"rdma_devices", diagnosis.rdma},
          {"model", to_json(diagnosis.model)},
          {"features", std::move(features)}};
}

std::string to_table(const Diagnosis& diagnosis) {
  Table table;
  add_processor(table, diagnosis.processor);
  std::string memory = fmt::format("{}, {} available", gibibytes(diagnosis.memory.total),
                                   gibibytes(diagnosis.memory.available));
  if (diagnosis.memory.limit) memory += fmt::format(", limited to {}", gibibytes(*diagnosis.memory.limit));
  table.row("memory", memory);
  table.row("files", fmt::format("{} may be open at once", diagnosis.open_files));
  add_gpus(table, diagnosis.gpu);
  table.row("nccl", diagnosis.nccl.value_or("not found"));
  table.row("mpi", diagnosis.mpi.value_or("not found"));
  table.row("ucx", diagnosis.ucx.value_or("not found"));
  table.row("rdma", diagnosis.rdma.empty() ? "no device" : fmt::format("{}", fmt::join(diagnosis.rdma, " ")));
  if (diagnosis.model) add_model(table, *diagnosis.model);
  table.line("");
  table.line("features");
  for (const Feature& feature : judge_features(diagnosis)) table.feature(feature);
  return table.take();
}

void add_doctor(CLI::App& app) {
  struct Options {
    std::string model;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("doctor", "Say what this machine can do and what is missing for which feature");
  add_model_option(*command, options->model)
      ->description("Checkpoint directory whose disk is measured (default: the bundled models/mini)");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->callback([options] {
    const Diagnosis diagnosis = examine_machine(options->model.empty() ? bundled_model() : options->model);
    const std::string text = options->json ? to_text(to_json(diagnosis)) + "\n" : to_table(diagnosis);
    std::fwrite(text.data(), 1, text.size(), stdout);
  });
}

}  // namespace thalweg::app
