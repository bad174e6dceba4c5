// `thalweg bench`: measurements of this build on this machine.
#include "app/commands.hpp"
#include "base/error.hpp"
#ifdef THALWEG_KERNEL_BENCH
#include "bench/kernel_bench.hpp"
#endif

#include <memory>
#include <string>

namespace thalweg::app {
namespace {

struct KernelOptions {
  std::string filter;
  std::string out;
};

void run_kernels([[maybe_unused]] const KernelOptions& options) {
#ifdef THALWEG_KERNEL_BENCH
  bench::run_kernel_bench({options.filter, options.out});
#else
  throw WorkError("bench kernels: this build has no CUDA kernels for SM90; configure with --preset cuda");
#endif
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure this build on this machine");
  bench->require_subcommand(1);
  CLI::App* kernels =
      bench->add_subcommand("kernels", "Time each GPU operation at the released model's shapes; JSON lines");
  const auto options = std::make_shared<KernelOptions>();
  kernels->add_option(
      "--filter", options->filter,
      "Only cases whose section/operation/size contains this text, e.g. moe/w13 or dense/o/64");
  kernels->add_option("--out", options->out, "Also write the lines to this file")->type_name("FILE");
  kernels->callback([options] { run_kernels(*options); });
  add_bench_decode(*bench);
  add_bench_prefix(*bench);
  add_bench_acceptance(*bench);
  add_bench_grammar(*bench);
}

}  // namespace thalweg::app
