#include "checkpoint/safetensors.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "base/json_members.hpp"

namespace thalweg::checkpoint {
namespace {

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::size_t kMaxDimensions = 16;

struct DTypeRow {
  DType dtype;
  const char* name;
  std::int64_t size;
};

// In the order of the enumerators, which index it.
constexpr std::array<DTypeRow, 16> kDTypes = {{{DType::boolean, "BOOL", 1},
                                               {DType::u8, "U8", 1},
                                               {DType::i8, "I8", 1},
                                               {DType::u16, "U16", 2},
                                               {DType::i16, "I16", 2},
                                               {DType::f16, "F16", 2},
                                               {DType::bf16, "BF16", 2},
                                               {DType::u32, "U32", 4},
                                               {DType::i32, "I32", 4},
                                               {DType::f32, "F32", 4},
                                               {DType::u64, "U64", 8},
                                               {DType::i64, "I64", 8},
                                               {DType::f64, "F64", 8},
                                               {DType::e4m3, "F8_E4M3", 1},
                                               {DType::e5m2, "F8_E5M2", 1},
                                               {DType::e8m0, "F8_E8M0", 1}}};

// A header entry before its range is known to lie in the file.
struct Entry {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin;
  std::uint64_t end;
};

const Json& member(const Json& value, const char* name, const std::string& where) {
  const auto found = value.find(name);
  if (found == value.end()) throw InputError(where, fmt::format("\"{}\" is missing", name));
  return *found;
}

std::uint64_t natural(const Json& value, const std::string& where, const char* what) {
  if (!value.is_number_unsigned() ||
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    throw InputError(where,
                     fmt::format("{}: expected integers from 0 to 2^63-1, found {}", what, to_text(value)));
  }
  return value.get<std::uint64_t>();
}

DType parse_dtype(const Json& value, const std::string& where) {
  if (!value.is_string()) throw InputError(where, "dtype: expected a string, found " + to_text(value));
  const auto& name = value.get_ref<const std::string&>();
  for (const DTypeRow& row : kDTypes) {
    if (name == row.name) return row.dtype;
  }
  throw InputError(where, fmt::format("dtype \"{}\" is not supported", name));
}

// product(shape) * size, refused when it leaves 63 bits.
std::uint64_t shape_bytes(const Entry& entry, const std::string& where) {
  if (std::ranges::find(entry.shape, 0) != entry.shape.end()) return 0;
  auto bytes = static_cast<std::uint64_t>(dtype_size(entry.dtype));
  for (const std::int64_t n : entry.shape) {
    if (bytes > std::uint64_t{std::numeric_limits<std::int64_t>::max()} / static_cast<std::uint64_t>(n)) {
      throw InputError(where, fmt::format("shape {} has more than 2^63 bytes", shape_text(entry.shape)));
    }
    bytes *= static_cast<std::uint64_t>(n);
  }
  return bytes;
}

Entry parse_entry(const std::string& name, const Json& value, const std::string& subject) {
  const std::string where = fmt::format("{}: tensor \"{}\"", subject, name);
  if (!value.is_object()) throw InputError(where, "an object", to_text(value));
  for (const auto& [key, unused] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      throw InputError(where, fmt::format("unknown member \"{}\"", key));
    }
  }
  Entry entry{.name = name,
              .dtype = parse_dtype(member(value, "dtype", where), where),
              .shape = {},
              .begin = 0,
              .end = 0};
  const Json& shape = member(value, "shape", where);
  if (!shape.is_array() || shape.size() > kMaxDimensions) {
    throw InputError(where, fmt::format("shape: an array of at most {} sizes", kMaxDimensions),
                     to_text(shape));
  }
  for (const Json& n : shape) entry.shape.push_back(static_cast<std::int64_t>(natural(n, where, "shape")));
  const Json& offsets = member(value, "data_offsets", where);
  if (!offsets.is_array() || offsets.size() != 2) {
    throw InputError(where, "data_offsets: two byte offsets", to_text(offsets));
  }
  entry.begin = natural(offsets[0], where, "data_offsets");
  entry.end = natural(offsets[1], where, "data_offsets");
  if (entry.begin > entry.end) {
    throw InputError(where,
                     fmt::format("data_offsets [{}, {}] end before they begin", entry.begin, entry.end));
  }
  if (const std::uint64_t bytes = shape_bytes(entry, where); entry.end - entry.begin != bytes) {
    throw InputError(where, fmt::format("expected {} bytes for {} {}, found {} (data_offsets [{}, {}])",
                                        bytes, dtype_name(entry.dtype), shape_text(entry.shape),
                                        entry.end - entry.begin, entry.begin, entry.end));
  }
  return entry;
}

void read_metadata(const Json& value, const std::string& subject,
                   std::map<std::string, std::string>& metadata) {
  if (!value.is_object()) throw InputError(subject + ": __metadata__", "an object", to_text(value));
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) throw InputError(subject + ": __metadata__." + key, "a string", to_text(text));
    metadata.emplace(key, text.get<std::string>());
  }
}

std::string_view header_text(std::span<const std::byte> file, const std::string& subject) {
  if (file.size() < 8) {
    throw InputError(subject, "8 bytes of header length", fmt::format("a file of {} bytes", file.size()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  if (length > kMaxHeaderBytes) {
    throw InputError(subject, fmt::format("a header of at most {} bytes", kMaxHeaderBytes),
                     fmt::format("header length {}", length));
  }
  if (length > file.size() - 8) {
    throw InputError(subject, fmt::format("a header of {} bytes", length),
                     fmt::format("a file that ends {} bytes short of it", length - (file.size() - 8)));
  }
  return {reinterpret_cast<const char*>(file.data()) + 8, static_cast<std::size_t>(length)};
}

// The ranges, in order, must cover the data without overlap, gap or rest.
void check_cover(const std::vector<Entry>& entries, std::uint64_t data_bytes, const std::string& subject) {
  std::uint64_t last = 0;
  for (const Entry& entry : entries) last = std::max(last, entry.end);
  std::uint64_t covered = 0;
  const Entry* previous = nullptr;
  for (const Entry& entry : entries) {
    const std::string where = fmt::format("{}: tensor \"{}\"", subject, entry.name);
    if (entry.begin < covered) {
      throw InputError(where, fmt::format("its data overlaps that of \"{}\" by {} bytes", previous->name,
                                          std::min(covered, entry.end) - entry.begin));
    }
    if (entry.begin > covered) {
      throw InputError(where, fmt::format("a gap of {} bytes lies before its data", entry.begin - covered));
    }
    if (entry.end > data_bytes) {
      const std::uint64_t missing = std::min(entry.end - data_bytes, entry.end - entry.begin);
      throw InputError(
          where, fmt::format("cut off: {} of its {} bytes are missing, the file is {} bytes short", missing,
                             entry.end - entry.begin, last - data_bytes));
    }
    covered = entry.end;
    previous = &entry;
  }
  if (covered < data_bytes) {
    throw InputError(subject, fmt::format("{} trailing bytes after the last tensor", data_bytes - covered));
  }
}

std::string header_json(std::span<const StoredTensor> tensors,
                        const std::map<std::string, std::string>& metadata, const std::string& subject) {
  std::string text = "{";
  if (!metadata.empty()) {
    Json values = Json::object();
    for (const auto& [key, value] : metadata) values[key] = value;
    text += "\"__metadata__\":" + to_text(values) + (tensors.empty() ? "" : ",");
  }
  std::unordered_set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::string where = fmt::format("{}: tensor \"{}\"", subject, tensor.name);
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
      throw InputError(where, "name not usable");
    const std::uint64_t bytes = shape_bytes({tensor.name, tensor.dtype, tensor.shape, 0, 0}, where);
    if (bytes != tensor.bytes.size()) {
      throw InputError(where, fmt::format("{} bytes", bytes), fmt::format("{}", tensor.bytes.size()));
    }
    text += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        names.size() > 1 ? "," : "", to_text(tensor.name), dtype_name(tensor.dtype),
                        fmt::join(tensor.shape, ","), offset, offset + bytes);
    offset += bytes;
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');  // keeps the data 8-byte aligned
  return text;
}

// A file that is renamed to its final name when complete, and removed when not.
class PendingFile {
 public:
  explicit PendingFile(const std::filesystem::path& path)
      : final_(target(path)), temporary_(fmt::format("{}.{}.part", final_.string(), ::getpid())) {
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("cannot create");
  }
  ~PendingFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), std::size_t{1} << 30));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("cannot write");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }

  void commit() {
    if (::fsync(fd_) != 0 || ::close(std::exchange(fd_, -1)) != 0) fail("cannot write");
    if (::rename(temporary_.c_str(), final_.c_str()) != 0) fail("cannot rename");
    temporary_.clear();
  }

 private:
  // Where a symbolic link leads; a device or folder is not replaced by a file.
  static std::filesystem::path target(const std::filesystem::path& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      throw InputError(path.string(), "a regular file to write to", "something else");
    }
    return std::filesystem::is_symlink(path, error) ? std::filesystem::canonical(path) : path;
  }

  [[noreturn]] void fail(const char* what) const {
    throw WorkError(fmt::format("{}: {}: {}", final_.string(), what, std::strerror(errno)));
  }

  std::filesystem::path final_;
  std::string temporary_;
  int fd_ = -1;
};

}  // namespace

const char* dtype_name(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)].name;
}

std::int64_t dtype_size(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)].size;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

SafetensorsContent parse_safetensors(std::span<const std::byte> file, const std::string& subject) {
  const std::string_view header = header_text(file, subject);
  if (!header.starts_with('{')) throw InputError(subject + ": header", "a JSON object", "no opening brace");
  SafetensorsContent content;
  std::vector<Entry> entries;
  read_json_members(header, subject, {}, [&](std::string_view, const std::string& name, const Json& value) {
    if (name == "__metadata__") {
      read_metadata(value, subject, content.metadata);
    } else {
      entries.push_back(parse_entry(name, value, subject));
    }
  });
  std::ranges::stable_sort(entries, {}, [](const Entry& entry) { return std::pair(entry.begin, entry.end); });
  const auto data = file.subspan(8 + header.size());
  check_cover(entries, data.size(), subject);
  content.tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    content.tensors.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape),
                               data.subspan(entry.begin, entry.end - entry.begin)});
  }
  return content;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(path), content_(parse_safetensors(file_.bytes(), path.string())) {
  positions_.reserve(content_.tensors.size());
  for (std::size_t i = 0; i < content_.tensors.size(); ++i) positions_.emplace(content_.tensors[i].name, i);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = positions_.find(name);
  return found == positions_.end() ? nullptr : &content_.tensors[found->second];
}

const StoredTensor& SafetensorsFile::at(std::string_view name) const {
  if (const StoredTensor* tensor = find(name)) return *tensor;
  throw InputError(path().string(), fmt::format("tensor \"{}\" is missing", name));
}

void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string header = header_json(tensors, metadata, path.string());
  std::array<std::byte, 8> length;
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<std::byte>(header.size() >> (8 * i));
  PendingFile file(path);
  file.write(length);
  file.write(std::as_bytes(std::span(header)));
  for (const StoredTensor& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

}  // namespace thalweg::checkpoint
