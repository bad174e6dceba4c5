// Number-format vectors of the golden data, kept in tests/data/primitives.
#pragma once

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"

namespace thalweg::numeric::testing {

inline checkpoint::SafetensorsFile golden_file(const std::string& name) {
  return checkpoint::SafetensorsFile(std::filesystem::path(THALWEG_SOURCE_DIR) / "tests/data/primitives" /
                                     (name + ".safetensors"));
}

template <class T>
std::vector<T> golden_values(const checkpoint::SafetensorsFile& file, const char* name) {
  const auto bytes = file.at(name).bytes;
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace thalweg::numeric::testing
