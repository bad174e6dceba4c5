// Facts about the machine that a program can read without privileges: processor, memory, limits, disk speed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::app {

struct Processor {
  std::string model;            ///< empty if the system does not say
  std::size_t cores = 0;        ///< physical cores; 0 if the system does not say
  std::size_t threads = 0;      ///< hardware threads online
  std::size_t usable = 0;       ///< hardware threads this process may use (its affinity mask)
  std::optional<double> quota;  ///< processors the control group allows, if it limits them
  std::vector<std::string>
      features;             ///< the vector and matrix extensions of interest that the system reports
  std::string simd_target;  ///< the instruction set that kernels of the CPU backend chose, e.g. "AVX3"
};

struct Memory {
  std::uint64_t total = 0;             ///< bytes
  std::uint64_t available = 0;         ///< bytes that can be used without swapping
  std::optional<std::uint64_t> limit;  ///< bytes the control group allows, if it limits them
};

/// Processor facts in `cpuinfo`, the text of /proc/cpuinfo; fills `model`, `cores`, `threads` and `features`.
Processor read_cpuinfo(std::string_view cpuinfo);

/// `total` and `available` in `meminfo`, the text of /proc/meminfo.
Memory read_meminfo(std::string_view meminfo);

Processor this_processor();
Memory this_memory();

/// Open files this process may have (the soft limit).
std::uint64_t open_file_limit();

struct DiskSpeed {
  std::filesystem::path file;    ///< what was read
  std::uint64_t bytes = 0;       ///< how much of it
  double seconds = 0;            ///< how long that took
  bool past_page_cache = false;  ///< true: read from the device itself; false: cached pages may have helped
  double bytes_per_second() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

/// Reads the largest file of `directory` front to back for at most about a second. Nothing if it holds no
/// file that can be read. Nothing is written.
std::optional<DiskSpeed> measure_disk_speed(const std::filesystem::path& directory);

}  // namespace thalweg::app
