#include "base/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace thalweg {
namespace {

std::string system_message() {
  return std::strerror(errno);
}

}  // namespace

MappedFile::MappedFile(std::filesystem::path path) : path_(std::move(path)) {
  const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw InputError(path_.string(), "cannot open: " + system_message());
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw InputError(path_.string(), "not a regular file");
  }
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ > 0) {
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) {
      const std::string why = system_message();
      ::close(fd);
      throw InputError(path_.string(), "cannot map: " + why);
    }
    data_ = static_cast<const std::byte*>(address);
  }
  ::close(fd);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

std::string read_text_file(const std::filesystem::path& path, std::size_t limit) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  if (bytes.size() > limit) {
    throw InputError(path.string(), fmt::format("at most {} bytes", limit),
                     fmt::format("{} bytes", bytes.size()));
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace thalweg
