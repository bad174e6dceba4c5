// Row-major values in device memory that only ever grow, so that steps of a size seen before allocate
// nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "backend/cuda/device.hpp"

namespace thalweg::cuda::general {

/// Device memory of at least the size asked for last; contents are not kept when it grows.
template <class T>
class Buffer {
 public:
  T* reserve(std::size_t count) {
    if (count > memory_.size()) memory_ = DeviceArray<T>(std::max(count, memory_.size() * 3 / 2));
    return memory_.data();
  }
  T* data() const { return memory_.data(); }
  /// Copies `values` to the front. They may be changed when the call returns.
  T* upload(const std::vector<T>& values) {
    reserve(std::max<std::size_t>(values.size(), 1));
    if (!values.empty()) {
      check(cudaMemcpyAsync(data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
            "copy to device");
    }
    return data();
  }

 private:
  DeviceArray<T> memory_;
};

class Rows {
 public:
  void resize(std::size_t rows, std::size_t width) {
    rows_ = rows;
    width_ = width;
    memory_.reserve(std::max<std::size_t>(rows * width, 1));
  }
  float* data() const { return memory_.data(); }
  float* row(std::size_t i) const { return memory_.data() + i * width_; }
  std::size_t rows() const { return rows_; }
  std::size_t width() const { return width_; }
  std::size_t size() const { return rows_ * width_; }

  std::vector<float> download() const {
    std::vector<float> values(size());
    if (!values.empty()) {
      check(cudaMemcpy(values.data(), data(), size() * sizeof(float), cudaMemcpyDeviceToHost),
            "copy from device");
    }
    return values;
  }
  void upload(const std::vector<float>& values) {
    if (values.empty()) return;
    check(cudaMemcpy(data(), values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
          "copy to device");
  }

 private:
  Buffer<float> memory_;
  std::size_t rows_ = 0;
  std::size_t width_ = 0;
};

/// Blocks of `size` threads that cover `count` items.
inline unsigned blocks_for(std::size_t count, std::size_t size) {
  return static_cast<unsigned>((count + size - 1) / size);
}

}  // namespace thalweg::cuda::general
