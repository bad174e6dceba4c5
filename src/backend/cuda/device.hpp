// Device memory, streams and error checks for host code of the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace thalweg::cuda {

/// Throws WorkError("CUDA: <what>: <reason>") unless `status` is success.
void check(cudaError_t status, const char* what);

/// Whether a device of compute capability 9.0 can be used; `reason` says why not.
bool device_usable(const char** reason);

/// Name of the current device, e.g. "NVIDIA H200".
const char* device_name();

/// Bytes of device memory. Movable; freed with the object. Not thread-safe.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  /// Uninitialised memory, 256-byte aligned. Throws WorkError when the device has not enough.
  explicit DeviceBytes(std::size_t size);
  ~DeviceBytes();
  DeviceBytes(DeviceBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceBytes& operator=(DeviceBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  void* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// Sets every byte, in order with the default stream.
  void fill(int byte);

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A typed array in device memory.
template <class T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(std::size_t count) : bytes_(count * sizeof(T)), count_(count) {}
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { upload(values); }

  T* data() const { return static_cast<T*>(bytes_.data()); }
  std::size_t size() const { return count_; }
  void fill(int byte) { bytes_.fill(byte); }

  /// Copies and waits.
  void upload(std::span<const T> values) {
    check(cudaMemcpy(data(), values.data(), values.size_bytes(), cudaMemcpyHostToDevice), "copy to device");
  }
  void upload(const std::vector<T>& values) { upload(std::span<const T>(values)); }
  /// Waits for everything before it and copies.
  std::vector<T> download() const {
    std::vector<T> values(count_);
    check(cudaMemcpy(values.data(), data(), count_ * sizeof(T), cudaMemcpyDeviceToHost), "copy from device");
    return values;
  }

 private:
  DeviceBytes bytes_;
  std::size_t count_ = 0;
};

}  // namespace thalweg::cuda
