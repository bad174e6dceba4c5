#include "app/capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace thalweg::app {

std::string Capture::full_name(int layer, const char* name) const {
  if (layer < 0) return name;
  if (layer >= layers_) return fmt::format("D{}.{}", layer - layers_, name);
  return fmt::format("L{:02}.{}", layer, name);
}

void Capture::floats(int layer, const char* name, std::span<float> values, std::size_t rows,
                     std::initializer_list<std::size_t> shape) {
  Collected& collected = collected_[full_name(layer, name)];
  std::vector<std::int64_t> row_shape(shape.begin(), shape.end());
  if (!collected.shape.empty()) row_shape.back() = std::max(row_shape.back(), collected.shape.back());
  collected.shape = row_shape;
  const std::size_t width = rows == 0 ? 0 : values.size() / rows;
  for (std::size_t i = 0; i < rows; ++i) {
    collected.floats.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(i * width),
                                  values.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
  }
}

void Capture::integers(int layer, const char* name, std::span<const std::int64_t> values, std::size_t rows,
                       std::size_t width) {
  Collected& collected = collected_[full_name(layer, name)];
  collected.integer = true;
  const auto known = collected.shape.empty() ? 0 : collected.shape.back();
  collected.shape = {std::max(known, static_cast<std::int64_t>(width))};
  for (std::size_t i = 0; i < rows; ++i) {
    collected.integers.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(i * width),
                                    values.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
  }
}

void Capture::pack(Collected& collected) {
  std::int64_t width = 1;
  for (const std::int64_t size : collected.shape) width *= size;
  collected.bytes.clear();
  const auto put = [&collected](auto value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    collected.bytes.insert(collected.bytes.end(), from, from + sizeof value);
  };
  for (std::vector<float>& row : collected.floats) {
    row.resize(width, -std::numeric_limits<float>::infinity());
    for (const float value : row) put(value);
  }
  for (std::vector<std::int64_t>& row : collected.integers) {
    row.resize(width, 0);
    for (const std::int64_t value : row) put(static_cast<std::int32_t>(value));
  }
}

std::vector<checkpoint::StoredTensor> Capture::tensors() {
  std::vector<checkpoint::StoredTensor> result;
  for (auto& [name, collected] : collected_) {
    pack(collected);
    const std::size_t rows = collected.integer ? collected.integers.size() : collected.floats.size();
    std::vector<std::int64_t> shape = {static_cast<std::int64_t>(rows)};
    shape.insert(shape.end(), collected.shape.begin(), collected.shape.end());
    result.push_back(
        {name, collected.integer ? checkpoint::DType::i32 : checkpoint::DType::f32, shape, collected.bytes});
  }
  return result;
}

}  // namespace thalweg::app
