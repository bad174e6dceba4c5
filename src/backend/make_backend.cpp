#include <fmt/format.h>

#include "backend/backend.hpp"
#include "base/error.hpp"

namespace thalweg::backend {
namespace {

#ifdef THALWEG_CUDA
constexpr bool kHasCuda = true;
#else
constexpr bool kHasCuda = false;
#endif

}  // namespace

const char* device_name(Device device) {
  switch (device) {
    case Device::cpu:
      return "cpu";
    case Device::cuda:
      return "cuda";
  }
  return "";
}

Device parse_device(std::string_view name) {
  if (name == "cpu") return Device::cpu;
  if (name == "cuda" && kHasCuda) return Device::cuda;
  throw UsageError(fmt::format("--backend: expected {}, found {}",
                               kHasCuda ? "cpu or cuda" : "cpu (this program is built without CUDA)", name));
}

std::unique_ptr<Backend> make_backend(const model::Model& model, const BackendOptions& options) {
#ifdef THALWEG_CUDA
  if (options.device == Device::cuda) return make_cuda_backend(model, options);
#endif
  if (options.device != Device::cpu) {
    throw UsageError(fmt::format("--backend: this program is built without {}", device_name(options.device)));
  }
  return make_cpu_backend(model, options);
}

}  // namespace thalweg::backend
