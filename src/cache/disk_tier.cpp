#include "cache/disk_tier.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace thalweg::cache {
namespace {

namespace fs = std::filesystem;

/// An open file descriptor.
class File {
 public:
  File(const fs::path& path, int flags) : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }

  /// Size of a regular file.
  std::optional<std::size_t> size() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    return static_cast<std::size_t>(status.st_size);
  }

  bool write_all(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
  }

  /// Reads until `bytes` is full or the file ends; the number of bytes read.
  std::size_t read_some(std::span<std::byte> bytes) {
    std::size_t total = 0;
    while (total < bytes.size()) {
      const ssize_t count = ::read(descriptor_, bytes.data() + total, bytes.size() - total);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      total += static_cast<std::size_t>(count);
    }
    return total;
  }

  /// Closes and tells whether everything written has been accepted.
  bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

std::string last_error() {
  return std::strerror(errno);
}

}  // namespace

DiskTier::DiskTier(fs::path root, const Key128& space, std::size_t budget_bytes, Report report)
    : Tier("disk", budget_bytes), folder_(root / to_hex(space)), space_(space), report_(std::move(report)) {
  std::error_code ignored;
  if (fs::exists(root, ignored) && !fs::is_directory(root, ignored)) {
    throw InputError(root.string(), "a folder for cached prefixes", "something else");
  }
  if (!open_folder()) return;
  take_in_records();
  enforce_budget();
}

DiskTier::~DiskTier() {
  if (lock_ >= 0) ::close(lock_);
}

bool DiskTier::open_folder() {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!fs::is_directory(folder_, error)) {
    stop_writing(fmt::format("cannot create {}: {}", folder_.string(), error.message()));
    return false;
  }
  // Two processes would evict each other's records and count budgets twice.
  lock_ = ::open((folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    stop_writing(fmt::format("cannot write to {}: {}", folder_.string(), last_error()));
    return true;
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    stop_writing(fmt::format("{} is in use by another process", folder_.string()));
    return false;
  }
  return true;
}

void DiskTier::take_in_records() {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder_, fs::directory_options::skip_permission_denied, error),
       end;
       !error && entry != end; entry.increment(error)) {
    std::error_code status;
    if (entry.depth() == 0 || !entry->is_regular_file(status) || status) continue;
    const fs::file_time_type time = entry->last_write_time(status);
    if (!status) files.emplace_back(time, entry->path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& [time, file] : files) take_in_file(file);
}

void DiskTier::take_in_file(const fs::path& path) {
  std::optional<RecordInfo> info;
  {
    File file(path, O_RDONLY);
    if (!file.is_open()) return;
    std::byte header[kRecordHeaderBytes];
    const std::size_t count = file.read_some(header);
    info = decode_record_header(std::span(header).first(count), space_);
    if (info && file.size() != info->bytes) info.reset();
  }
  // The name is checked as well: a record copied under another key must not answer for it.
  if (info && path == path_of(info->name.key)) {
    adopt(*info);
    return;
  }
  count_lost();
  std::error_code ignored;
  fs::remove(path, ignored);
}

fs::path DiskTier::path_of(const Key128& key) const {
  const std::string name = to_hex(key);
  return folder_ / name.substr(0, 2) / name;
}

bool DiskTier::store(const RecordPtr& record) {
  if (!writing_) return false;
  const fs::path path = path_of(record->info.name.key);
  fs::path unfinished = path;
  unfinished += ".part";
  std::error_code error;
  fs::create_directory(path.parent_path(), error);
  File file(unfinished, O_WRONLY | O_CREAT | O_TRUNC);
  const bool written = file.is_open() && file.write_all(encode_record(*record, space_)) && file.close() &&
                       ::rename(unfinished.c_str(), path.c_str()) == 0;
  if (written) return true;
  stop_writing(fmt::format("cannot write {}: {}", path.string(), last_error()));
  fs::remove(unfinished, error);
  return false;
}

RecordPtr DiskTier::load(const RecordInfo& info) {
  File file(path_of(info.name.key), O_RDONLY);
  if (!file.is_open() || file.size() != info.bytes) return nullptr;
  std::vector<std::byte> bytes(info.bytes);
  if (file.read_some(bytes) != bytes.size()) return nullptr;
  std::optional<Record> record = decode_record(bytes, space_);
  if (!record || record->info != info) return nullptr;
  return std::make_shared<const Record>(std::move(*record));
}

void DiskTier::drop(const RecordInfo& info) {
  std::error_code ignored;
  fs::remove(path_of(info.name.key), ignored);
}

void DiskTier::stop_writing(const std::string& what) {
  writing_ = false;
  if (report_) report_("disk tier of the prefix cache: " + what + "; going on without writing to it");
}

}  // namespace thalweg::cache
