// GPUs and communication libraries, looked up at run time: none of them is needed to start the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace thalweg::app {

struct Gpu {
  std::string name;
  int major = 0;  ///< compute capability
  int minor = 0;
  std::uint64_t memory = 0;  ///< bytes
};

struct GpuSystem {
  std::vector<Gpu> gpus;
  std::string driver;   ///< version of the NVIDIA driver, e.g. "580.82.07"; empty if unknown
  std::string cuda;     ///< newest CUDA version the driver takes, e.g. "13.0"; empty without a driver
  std::string problem;  ///< why there are none, in words; empty if there are some
};

/// Asks the NVIDIA driver. Creates no context and takes no GPU memory.
GpuSystem find_gpus();

/// Versions of shared libraries that some features load; nothing if the loader does not find the library.
std::optional<std::string> nccl_version();
std::optional<std::string> mpi_version();
std::optional<std::string> ucx_version();

/// RDMA devices the kernel lists, by name.
std::vector<std::string> rdma_devices();

}  // namespace thalweg::app
