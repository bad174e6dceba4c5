#include "backend/cuda/device.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace thalweg::cuda {

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw WorkError(fmt::format("CUDA: {}: {}", what, cudaGetErrorString(status)));
  }
}

bool device_usable(const char** reason) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    *reason = cudaGetErrorString(status);
    return false;
  }
  int major = 0;
  int minor = 0;
  if (count == 0 || cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0) != cudaSuccess) {
    *reason = "no CUDA device";
    return false;
  }
  if (major != 9 || minor != 0) {
    *reason = "the device has another compute capability than 9.0";
    return false;
  }
  return true;
}

const char* device_name() {
  static const cudaDeviceProp properties = [] {
    cudaDeviceProp found{};
    check(cudaGetDeviceProperties(&found, 0), "device properties");
    return found;
  }();
  return properties.name;
}

DeviceBytes::DeviceBytes(std::size_t size) : size_(size) {
  if (size != 0 && cudaMalloc(&data_, size) != cudaSuccess) {
    cudaGetLastError();
    throw WorkError(fmt::format("CUDA: no room for {} bytes of device memory", size));
  }
}

DeviceBytes::~DeviceBytes() {
  cudaFree(data_);
}

void DeviceBytes::fill(int byte) {
  check(cudaMemset(data_, byte, size_), "fill device memory");
}

}  // namespace thalweg::cuda
