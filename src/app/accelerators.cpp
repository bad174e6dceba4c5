#include "app/accelerators.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>

namespace thalweg::app {
namespace {

/// A shared library held open, or none of the names could be loaded. The libraries asked for here start
/// threads and register exit handlers, so they are never unloaded.
class SharedLibrary {
 public:
  SharedLibrary(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (handle_ == nullptr) handle_ = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    }
  }
  explicit operator bool() const { return handle_ != nullptr; }

  /// The function of that name, or null.
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  void* handle_ = nullptr;
};

std::string driver_version() {
  const SharedLibrary nvml({"libnvidia-ml.so.1"});
  if (!nvml) return {};
  const auto init = nvml.function<int()>("nvmlInit_v2");
  const auto version = nvml.function<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  const auto shutdown = nvml.function<int()>("nvmlShutdown");
  if (init == nullptr || version == nullptr || shutdown == nullptr || init() != 0) return {};
  char text[80] = {};
  const bool known = version(text, sizeof text) == 0;
  shutdown();
  return known ? text : "";
}

/// The few calls of the CUDA driver API (https://docs.nvidia.com/cuda/cuda-driver-api) that doctor makes. All
/// return 0 for success.
struct CudaDriver {
  explicit CudaDriver(const SharedLibrary& library)
      : init(library.function<int(unsigned)>("cuInit")),
        version(library.function<int(int*)>("cuDriverGetVersion")),
        count(library.function<int(int*)>("cuDeviceGetCount")),
        device(library.function<int(int*, int)>("cuDeviceGet")),
        name(library.function<int(char*, int, int)>("cuDeviceGetName")),
        memory(library.function<int(std::size_t*, int)>("cuDeviceTotalMem_v2")),
        attribute(library.function<int(int*, int, int)>("cuDeviceGetAttribute")) {}
  bool complete() const {
    return init != nullptr && version != nullptr && count != nullptr && device != nullptr &&
           name != nullptr && memory != nullptr && attribute != nullptr;
  }

  int (*init)(unsigned flags);
  int (*version)(int* number);
  int (*count)(int* devices);
  int (*device)(int* handle, int ordinal);
  int (*name)(char* text, int length, int handle);
  int (*memory)(std::size_t* bytes, int handle);
  int (*attribute)(int* value, int which, int handle);
};

std::optional<Gpu> describe(const CudaDriver& cuda, int ordinal) {
  constexpr int compute_capability_major = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
  constexpr int compute_capability_minor = 76;
  Gpu gpu;
  int handle = 0;
  char name[256] = {};
  std::size_t bytes = 0;
  if (cuda.device(&handle, ordinal) != 0 || cuda.name(name, sizeof name, handle) != 0 ||
      cuda.memory(&bytes, handle) != 0 || cuda.attribute(&gpu.major, compute_capability_major, handle) != 0 ||
      cuda.attribute(&gpu.minor, compute_capability_minor, handle) != 0) {
    return std::nullopt;
  }
  gpu.name = name;
  gpu.memory = bytes;
  return gpu;
}

}  // namespace

GpuSystem find_gpus() {
  GpuSystem system;
  const SharedLibrary library({"libcuda.so.1"});
  if (!library) {
    system.problem = "no NVIDIA driver (libcuda.so.1 is not found)";
    return system;
  }
  system.driver = driver_version();
  const CudaDriver cuda(library);
  if (!cuda.complete()) {
    system.problem = "libcuda.so.1 lacks functions of the driver API";
    return system;
  }
  if (const int error = cuda.init(0); error != 0) {
    system.problem = fmt::format("the NVIDIA driver does not start (cuInit returned {})", error);
    return system;
  }
  if (int number = 0; cuda.version(&number) == 0) {
    system.cuda = fmt::format("{}.{}", number / 1000, number % 1000 / 10);
  }
  int count = 0;
  if (cuda.count(&count) != 0) count = 0;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    if (auto gpu = describe(cuda, ordinal)) system.gpus.push_back(std::move(*gpu));
  }
  if (system.gpus.empty()) system.problem = "the NVIDIA driver lists no GPU";
  return system;
}

std::optional<std::string> nccl_version() {
  const SharedLibrary library({"libnccl.so.2"});
  const auto version = library ? library.function<int(int*)>("ncclGetVersion") : nullptr;
  int number = 0;
  if (version == nullptr || version(&number) != 0) return std::nullopt;
  // Since 2.9 the number is major * 10000 + minor * 100 + patch.
  return fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

std::optional<std::string> mpi_version() {
  const SharedLibrary library({"libmpi.so.40", "libmpi.so.12"});  // Open MPI, MPICH
  const auto version = library ? library.function<int(char*, int*)>("MPI_Get_library_version") : nullptr;
  if (version == nullptr) return std::nullopt;
  std::string text(8192, '\0');  // MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the larger one
  int length = 0;
  if (version(text.data(), &length) != 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(std::max(length, 0)));
  return text.substr(0, std::min(text.find_first_of(",\n"), text.size()));
}

std::optional<std::string> ucx_version() {
  const SharedLibrary library({"libucp.so.0"});
  const auto version =
      library ? library.function<void(unsigned*, unsigned*, unsigned*)>("ucp_get_version") : nullptr;
  if (version == nullptr) return std::nullopt;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  version(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

std::vector<std::string> rdma_devices() {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/sys/class/infiniband", error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace thalweg::app
