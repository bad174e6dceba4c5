// A file mapped read-only into memory. Pages are read when touched; nothing is copied.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace thalweg {

/// Owns the mapping; `bytes()` stays valid as long as the object lives (also after a move). Thread-safe to
/// read.
class MappedFile {
 public:
  /// Throws InputError naming the file if it cannot be opened or mapped. An empty file gives an empty span.
  explicit MappedFile(std::filesystem::path path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The whole file as text. Throws InputError naming the file, also when it is larger than `limit` bytes.
std::string read_text_file(const std::filesystem::path& path, std::size_t limit = std::size_t{256} << 20);

}  // namespace thalweg
