// The safetensors file format: named tensors in one file, read in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.hpp"

namespace thalweg::checkpoint {

/// Element types of tensors in files. `e4m3` and `e8m0` are the codes of `numeric/float8.hpp`.
enum class DType { boolean, u8, i8, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64, e4m3, e5m2, e8m0 };

/// Name as safetensors writes it ("BF16", "F32", "F8_E4M3", "F8_E8M0", "I8", ...).
const char* dtype_name(DType dtype);

/// Bytes of one element.
std::int64_t dtype_size(DType dtype);

/// "[2, 3]", for messages.
std::string shape_text(std::span<const std::int64_t> shape);

/// A tensor in a file. Row-major, little-endian; `bytes` holds product(shape) * dtype_size(dtype) of them and
/// may start at any address, also one that is no multiple of the element size.
struct StoredTensor {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// What a file holds: its tensors in the order of their data, and the free text pairs of `__metadata__`.
struct SafetensorsContent {
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads the header of a whole file in memory; the tensors' bytes point into `file`. Throws InputError naming
/// `subject`, and the tensor where there is one, unless: the header is complete, at most 100,000,000 bytes of
/// JSON without repeated names, every dtype is known, every shape agrees with its byte range, and the ranges
/// cover the data exactly, without overlap, gap or trailing bytes.
SafetensorsContent parse_safetensors(std::span<const std::byte> file, const std::string& subject);

/// A mapped file. Movable; the tensors' bytes stay valid as long as it lives. Thread-safe to read.
class SafetensorsFile {
 public:
  /// Throws InputError naming the file for anything `parse_safetensors` refuses.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  const std::vector<StoredTensor>& tensors() const {
    return content_.tensors;
  }  ///< in the order of their data
  const std::map<std::string, std::string>& metadata() const { return content_.metadata; }

  /// nullptr if there is no tensor of that name.
  const StoredTensor* find(std::string_view name) const;
  /// Throws InputError naming file and tensor if there is none of that name.
  const StoredTensor& at(std::string_view name) const;

 private:
  MappedFile file_;
  SafetensorsContent content_;
  std::unordered_map<std::string_view, std::size_t> positions_;
};

/// Writes the tensors to `path` in the order given. The file appears whole or not at all: it is written under
/// a temporary name beside it and renamed. Throws WorkError if writing fails; names must be distinct and
/// sizes must agree (else InputError).
void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace thalweg::checkpoint
