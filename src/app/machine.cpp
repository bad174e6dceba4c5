#include "app/machine.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <set>
#include <utility>

#include "backend/cpu/gemm_kernels.hpp"
#include "base/thread_pool.hpp"

namespace thalweg::app {
namespace {

/// The extensions that decide how fast kernels run, as Linux spells them (x86 "flags", Arm "Features").
constexpr std::string_view interesting[] = {
    "ssse3",    "sse4_1",      "avx",        "avx2",        "fma",         "f16c",     "avx512f",  "avx512bw",
    "avx512vl", "avx512_vnni", "avx512vbmi", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_int8",
    "amx_bf16", "asimd",       "asimddp",    "i8mm",        "bf16",        "sve",      "sve2"};

/// Small files of /proc and /sys; empty if the file is not there.
std::string read_system_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

std::optional<std::uint64_t> to_number(std::string_view text) {
  std::uint64_t value = 0;
  text = trim(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

/// Calls take(name, value) for every line "name : value".
template <typename Take>
void for_each_field(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto colon = line.find(':');
    if (colon != std::string_view::npos) take(trim(line.substr(0, colon)), trim(line.substr(colon + 1)));
  }
}

std::vector<std::string> interesting_of(std::string_view flags) {
  std::set<std::string_view> present;
  while (!flags.empty()) {
    const std::string_view word = flags.substr(0, flags.find(' '));
    present.insert(word);
    flags.remove_prefix(std::min(word.size() + 1, flags.size()));
  }
  std::vector<std::string> found;
  for (const std::string_view name : interesting) {
    if (present.contains(name)) found.emplace_back(name);
  }
  return found;
}

/// A file of this process's control group (version 2); inside a container the group is often mounted as the
/// root.
std::string read_control_group(const char* name) {
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::string group;
  for_each_field(read_system_file("/proc/self/cgroup"), [&](std::string_view id, std::string_view rest) {
    if (id == "0" && rest.starts_with(':')) group = rest.substr(1);
  });
  const std::string own =
      read_system_file(root / group.substr(std::min<std::size_t>(group.size(), 1)) / name);
  return own.empty() ? read_system_file(root / name) : own;
}

}  // namespace

Processor read_cpuinfo(std::string_view cpuinfo) {
  Processor processor;
  std::set<std::pair<std::string, std::string>> cores;
  std::string package;
  for_each_field(cpuinfo, [&](std::string_view name, std::string_view value) {
    if (name == "processor") ++processor.threads;
    if (name == "model name" && processor.model.empty()) processor.model = value;
    if (name == "physical id") package = value;
    if (name == "core id") cores.emplace(package, value);
    if ((name == "flags" || name == "Features") && processor.features.empty()) {
      processor.features = interesting_of(value);
    }
  });
  processor.cores = cores.size();
  return processor;
}

Memory read_meminfo(std::string_view meminfo) {
  Memory memory;
  for_each_field(meminfo, [&](std::string_view name, std::string_view value) {
    const std::uint64_t bytes = to_number(value).value_or(0) * 1024;  // the file counts in kB
    if (name == "MemTotal") memory.total = bytes;
    if (name == "MemAvailable") memory.available = bytes;
  });
  return memory;
}

Processor this_processor() {
  Processor processor = read_cpuinfo(read_system_file("/proc/cpuinfo"));
  processor.usable = available_processors();
  processor.simd_target = backend::cpu::simd_target();
  const std::string quota =
      read_control_group("cpu.max");  // "200000 100000": microseconds of each period, or "max"
  const auto allowed = to_number(quota);
  const auto period = to_number(std::string_view(quota).substr(std::min(quota.find(' '), quota.size())));
  if (allowed && period.value_or(0) > 0)
    processor.quota = static_cast<double>(*allowed) / static_cast<double>(*period);
  return processor;
}

Memory this_memory() {
  Memory memory = read_meminfo(read_system_file("/proc/meminfo"));
  memory.limit = to_number(read_control_group("memory.max"));
  return memory;
}

std::uint64_t open_file_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace thalweg::app
