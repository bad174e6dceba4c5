// Collects intermediates of forward passes under the names of the golden data.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "model/observer.hpp"

namespace thalweg::app {

/// Appends what it observes by rows, so that a prompt fed in chunks gives the same tensors as a whole one.
/// Rows of growing width are padded: scores with -inf, integers with 0.
class Capture final : public model::Observer {
 public:
  /// `layers`: backbone layers; ids from there on are draft stages ("D0.", "D1.", ...).
  explicit Capture(int layers) : layers_(layers) {}

  void floats(int layer, const char* name, std::span<float> values, std::size_t rows,
              std::initializer_list<std::size_t> shape) override;
  void integers(int layer, const char* name, std::span<const std::int64_t> values, std::size_t rows,
                std::size_t width) override;

  /// The tensors collected; their bytes stay valid as long as this object is not changed.
  std::vector<checkpoint::StoredTensor> tensors();

 private:
  struct Collected {
    bool integer = false;
    std::vector<std::int64_t> shape;  // of one row; the last one is widened as needed
    std::vector<std::vector<float>> floats;
    std::vector<std::vector<std::int64_t>> integers;
    std::vector<std::byte> bytes;
  };
  std::string full_name(int layer, const char* name) const;
  static void pack(Collected& collected);

  int layers_;
  std::map<std::string, Collected> collected_;
};

}  // namespace thalweg::app
