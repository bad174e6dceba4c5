#include "app/batch_results.hpp"

#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"
#include "cache/prefix_key.hpp"

namespace thalweg::app {
namespace {

// Checks that a whole line is the result of an input line.
void check_result(const std::string& result, std::size_t index, const std::string& input,
                  const std::string& subject) {
  const Json json = parse_json(result, subject);
  if (!json.is_object() || !json.contains("index") || json["index"] != index) {
    throw InputError(subject, fmt::format("the result with index {}", index), result.substr(0, 60));
  }
  if (!json.contains("input") || json["input"] != line_digest(input)) {
    throw InputError(
        subject, fmt::format("a result of the batch's line {} (\"input\" {})", index + 1, line_digest(input)),
        "a result of another line");
  }
}

}  // namespace

std::string line_digest(std::string_view line) {
  return cache::to_hex(cache::xxh3_128(std::as_bytes(std::span(line)), 0)).substr(0, 16);
}

BatchResults::BatchResults(const std::string& file, std::istream& batch)
    : name_(file.empty() ? "standard output" : file) {
  if (file.empty()) {
    file_ = stdout;
    return;
  }
  open(file);
  try {
    resume(file, batch);
  } catch (...) {
    std::fclose(file_);
    throw;
  }
}

BatchResults::~BatchResults() {
  if (file_ != stdout) std::fclose(file_);
}

void BatchResults::open(const std::string& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw InputError(file, "a regular file for the results", "something else");
  }
  file_ = std::fopen(file.c_str(), "ab");
  if (file_ == nullptr) throw WorkError(fmt::format("{}: cannot write: {}", file, std::strerror(errno)));
  if (::flock(::fileno(file_), LOCK_EX | LOCK_NB) == 0) return;
  std::fclose(file_);
  throw InputError(file, "in use by another process");
}

void BatchResults::resume(const std::string& file, std::istream& batch) {
  std::ifstream in(file, std::ios::binary);
  std::uintmax_t whole = 0;
  std::string line;
  std::string input;
  while (std::getline(in, line)) {
    const std::string subject = fmt::format("{}: line {}", file, resumed_ + 1);
    const bool more = static_cast<bool>(std::getline(batch, input));
    if (in.eof()) {  // no newline: the last write was torn, if it was ours
      const std::string start = fmt::format("{{\"index\":{},", resumed_);
      const std::size_t length = std::min(start.size(), line.size());
      if (more && line.compare(0, length, start, 0, length) == 0) break;
      throw InputError(subject, fmt::format("the result with index {}", resumed_), line.substr(0, 60));
    }
    if (!more)
      throw InputError(file, fmt::format("at most {} results, as the batch has lines", resumed_), "more");
    check_result(line, resumed_, input, subject);
    ++resumed_;
    whole += line.size() + 1;
  }
  in.close();
  if (::ftruncate(::fileno(file_), static_cast<off_t>(whole)) != 0) {
    throw WorkError(fmt::format("{}: cannot cut a torn line off: {}", file, std::strerror(errno)));
  }
  next_ = resumed_;
}

void BatchResults::put(std::size_t index, std::string line) {
  const std::lock_guard lock(mutex_);
  waiting_[index] = std::move(line);
  while (!waiting_.empty() && waiting_.begin()->first == next_) {
    const std::string& text = waiting_.begin()->second;
    const bool written =
        std::fwrite(text.data(), 1, text.size(), file_) == text.size() && std::fflush(file_) == 0;
    if (!written) failed_ = errno;
    waiting_.erase(waiting_.begin());
    ++next_;
  }
  ++results_;
  arrived_.notify_all();
}

void BatchResults::wait(std::size_t given, std::size_t most) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return given - results_ < most || failed_ != 0; });
  if (failed_ != 0) throw WorkError(fmt::format("{}: write failed: {}", name_, std::strerror(failed_)));
}

std::size_t BatchResults::results() {
  const std::lock_guard lock(mutex_);
  return results_;
}

}  // namespace thalweg::app
