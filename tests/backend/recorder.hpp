// Records the intermediates of a forward pass by the names of the golden traces, and puts given values in
// their place.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "model/observer.hpp"

namespace thalweg::backend::testing {

/// Rows of every tensor in the order they were computed. Rows may differ in length (`index_scores`).
class Recorder final : public model::Observer {
 public:
  explicit Recorder(int layers) : layers_(layers) {}

  /// From now on `values` stand in for the tensor `name`, from its first row on.
  void replace(const std::string& name, std::vector<float> values) {
    replacements_[name] = {std::move(values), 0};
  }

  void floats(int layer, const char* name, std::span<float> values, std::size_t rows,
              std::initializer_list<std::size_t>) override {
    const std::string full = full_name(layer, name);
    if (const auto found = replacements_.find(full); found != replacements_.end()) {
      Replacement& replacement = found->second;
      std::copy_n(replacement.values.begin() + static_cast<std::ptrdiff_t>(replacement.used), values.size(),
                  values.begin());
      replacement.used += values.size();
    }
    append(floats_[full], std::span<const float>(values), rows);
  }
  void integers(int layer, const char* name, std::span<const std::int64_t> values, std::size_t rows,
                std::size_t) override {
    append(integers_[full_name(layer, name)], values, rows);
  }

  const std::vector<std::vector<float>>& floats(const std::string& name) const { return floats_.at(name); }
  const std::vector<std::vector<std::int64_t>>& integers(const std::string& name) const {
    return integers_.at(name);
  }
  bool has_floats(const std::string& name) const { return floats_.contains(name); }
  bool has_integers(const std::string& name) const { return integers_.contains(name); }
  void clear() {
    floats_.clear();
    integers_.clear();
  }

 private:
  struct Replacement {
    std::vector<float> values;
    std::size_t used = 0;
  };

  std::string full_name(int layer, const char* name) const {
    if (layer < 0) return name;
    char prefix[24];
    if (layer < layers_) {
      std::snprintf(prefix, sizeof prefix, "L%02d.", layer);
    } else {
      std::snprintf(prefix, sizeof prefix, "draft.D%d.", layer - layers_);
    }
    return std::string(prefix) + name;
  }

  template <class T>
  static void append(std::vector<std::vector<T>>& to, std::span<const T> values, std::size_t rows) {
    const std::size_t width = rows == 0 ? 0 : values.size() / rows;
    for (std::size_t i = 0; i < rows; ++i) {
      const auto row = values.subspan(i * width, width);
      to.emplace_back(row.begin(), row.end());
    }
  }

  int layers_;
  std::map<std::string, std::vector<std::vector<float>>> floats_;
  std::map<std::string, std::vector<std::vector<std::int64_t>>> integers_;
  std::map<std::string, Replacement> replacements_;
};

}  // namespace thalweg::backend::testing
