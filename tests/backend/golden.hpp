// Golden data: small checkpoints and what a reference implementation computes from them. `tiny` lies in
// tests/data with fewer rows kept; the others, and `tiny_whole`, come from the golden data directory where
// there is one.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "model/model.hpp"
#include "support/sanitized.hpp"
#include "text/engram_vocabulary.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::backend::testing {

using thalweg::testing::kSanitized;

inline const std::vector<std::string> kDataSets = {"tiny", "tiny_whole", "wide", "long", "realheads"};

inline std::filesystem::path source_directory() {
  return THALWEG_SOURCE_DIR;
}

/// Folder of a data set, if it is there.
inline std::optional<std::filesystem::path> find_data(const std::string& name) {
  if (name == "tiny") return source_directory() / "tests/data/tiny";
  const std::filesystem::path golden = source_directory() / "../shared/golden";
  std::filesystem::path folder = golden / (name == "tiny_whole" ? "tiny" : name);
  if (!std::filesystem::exists(folder)) return std::nullopt;
  return folder;
}

/// The checkpoint in `folder`, loaded once a test program.
inline const model::Model& load_model(const std::filesystem::path& folder) {
  static std::map<std::string, std::unique_ptr<model::Model>> loaded;
  std::unique_ptr<model::Model>& model = loaded[folder.string()];
  if (model == nullptr) {
    const auto tokenizer = text::Tokenizer::load(folder / "tokenizer.json");
    checkpoint::LoadOptions options;
    options.threads = 2;
    model = std::make_unique<model::Model>(checkpoint::Checkpoint::load(folder, options),
                                           text::engram_vocabulary(tokenizer));
  }
  return *model;
}

/// Tensors of a file by name, converted to the two types tests compute with.
class GoldenFile {
 public:
  explicit GoldenFile(const std::filesystem::path& path) : file_(path) {}

  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  const std::vector<checkpoint::StoredTensor>& tensors() const { return file_.tensors(); }
  std::vector<float> floats(const std::string& name) const { return copy<float>(file_.at(name)); }
  std::vector<std::int64_t> integers(const std::string& name) const {
    const checkpoint::StoredTensor& tensor = file_.at(name);
    if (tensor.dtype == checkpoint::DType::u8) return widen(copy<std::uint8_t>(tensor));
    if (tensor.dtype == checkpoint::DType::i64) return copy<std::int64_t>(tensor);
    return widen(copy<std::int32_t>(tensor));
  }
  std::vector<std::int32_t> ids(const std::string& name) const { return copy<std::int32_t>(file_.at(name)); }
  std::size_t rows(const std::string& name) const { return file_.at(name).shape[0]; }

 private:
  template <class T>
  static std::vector<T> copy(const checkpoint::StoredTensor& tensor) {
    std::vector<T> values(tensor.bytes.size() / sizeof(T));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  template <class T>
  static std::vector<std::int64_t> widen(const std::vector<T>& values) {
    return {values.begin(), values.end()};
  }

  checkpoint::SafetensorsFile file_;
};

/// A file of tests/data/primitives.
inline GoldenFile primitive(const std::string& name) {
  return GoldenFile(source_directory() / "tests/data/primitives" / (name + ".safetensors"));
}

/// Skips its tests, naming the data, where the data set is not there.
#define THALWEG_REQUIRE_DATA(name)                   \
  if (!::thalweg::backend::testing::find_data(name)) \
  GTEST_SKIP() << "needs " << name << " of the golden data directory"

/// Largest absolute difference; infinity for different sizes or a NaN.
inline double distance(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double{a[i]} - double{b[i]});
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    most = std::max(most, difference);
  }
  return most;
}

inline std::int32_t argmax(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// Best minus second best.
inline float margin(std::span<const float> logits) {
  const std::int32_t best = argmax(logits);
  float second = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (static_cast<std::int32_t>(i) != best) second = std::max(second, logits[i]);
  }
  return logits[best] - second;
}

inline double log_sum_exp(std::span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  return most + std::log(sum);
}

/// Kullback-Leibler divergence of softmax(b) from softmax(a), in nats.
inline double divergence(std::span<const float> a, std::span<const float> b) {
  const double za = log_sum_exp(a);
  const double zb = log_sum_exp(b);
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::exp(a[i] - za) * ((a[i] - za) - (b[i] - zb));
  return sum;
}

}  // namespace thalweg::backend::testing
