// Times each operation of the CUDA backend at the released model's shapes: `thalweg bench kernels`.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace thalweg::bench {

/// What one launch of a case has to do at the least.
struct Work {
  double bytes = 0;  ///< each input read once, each output written once
  double flops = 0;
};

/// One operation at one size. `prepare` allocates and fills what it needs and returns one launcher for each
/// of a number of copies of the data, enough that no copy is found in the L2 cache when its turn comes again.
struct KernelCase {
  using Launcher = std::function<void(cudaStream_t)>;

  std::string section;  ///< dense, moe, attn, index, topk, hc, small
  std::string op;
  std::string size_name;  ///< M, rows, B
  int size = 0;
  Work work;
  std::function<std::vector<Launcher>()> prepare;
};

std::vector<KernelCase> dense_cases();
std::vector<KernelCase> moe_cases();
std::vector<KernelCase> attention_cases();
std::vector<KernelCase> index_cases();
std::vector<KernelCase> selection_cases();
std::vector<KernelCase> mix_cases();
std::vector<KernelCase> routing_cases();

/// Best public kernels at a case, microseconds, as measured on an H200 (docs/kernels.md); 0: not measured.
struct PeerFigures {
  double any = 0;    ///< whatever its scales
  double exact = 0;  ///< with the checkpoint's recipe
};
PeerFigures peer_figures(const KernelCase& kernel_case);

struct KernelBenchOptions {
  std::string filter;    ///< only cases whose "section/op/size" contains this text
  std::string out_file;  ///< JSON lines; empty: standard output only
};

/// Runs the cases one after the other and prints one JSON object a line: section, operation, size, median
/// microseconds, bytes, FLOPs, microseconds of the roofline, its share, and the peers' figures. Throws
/// WorkError without a usable device.
void run_kernel_bench(const KernelBenchOptions& options);

}  // namespace thalweg::bench
