#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "app/machine.hpp"

namespace thalweg::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block = std::size_t{4} << 20;  // large enough to keep one device busy
constexpr std::size_t alignment = 4096;              // what O_DIRECT asks of addresses and offsets

struct Free {
  void operator()(void* address) const { std::free(address); }
};

fs::path largest_file(const fs::path& directory) {
  std::error_code error;
  fs::path largest;
  std::uintmax_t size = 0;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    const std::uintmax_t bytes = entry->is_regular_file(unreadable) ? entry->file_size(unreadable) : 0;
    if (!unreadable && bytes > size) {
      size = bytes;
      largest = entry->path();
    }
  }
  return largest;
}

/// Reads until the end of the file, an error or a second has passed.
void read_for_a_second(int fd, DiskSpeed& speed) {
  using Clock = std::chrono::steady_clock;
  const std::unique_ptr<void, Free> buffer(std::aligned_alloc(alignment, block));
  if (!buffer) return;
  const auto begin = Clock::now();
  for (;;) {
    const ssize_t got = ::read(fd, buffer.get(), block);
    speed.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (got <= 0) return;
    speed.bytes += static_cast<std::uint64_t>(got);
    if (static_cast<std::size_t>(got) < block || speed.seconds > 1) return;
  }
}

}  // namespace

std::optional<DiskSpeed> measure_disk_speed(const fs::path& directory) {
  DiskSpeed speed;
  speed.file = largest_file(directory);
  if (speed.file.empty()) return std::nullopt;
  // Not every file system can read past the page cache; some refuse at open, some at the first read.
  for (const int direct : {O_DIRECT, 0}) {
    const int fd = ::open(speed.file.c_str(), O_RDONLY | O_CLOEXEC | direct);
    if (fd < 0) continue;
    if (direct == 0) ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    read_for_a_second(fd, speed);
    ::close(fd);
    speed.past_page_cache = direct != 0;
    if (speed.bytes > 0) return speed;
  }
  return std::nullopt;
}

}  // namespace thalweg::app
