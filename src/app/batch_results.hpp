// The results file of a batch: one line a request, in order, resumable.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <istream>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace thalweg::app {

/// Names an input line in its result, so that results are never continued with another batch.
std::string line_digest(std::string_view line);

/// Any thread may put; one thread waits. The file is locked: a second process is refused.
class BatchResults {
 public:
  /// `file` empty: standard output. An existing file is continued: each of its whole lines must be the result
  /// of the line of `batch` with the same number, and a torn last line, which is cut off, the start of the
  /// next one. Throws InputError naming file and line otherwise, or if it is in use or no regular file,
  /// WorkError if it cannot be opened. Leaves `batch` somewhere.
  BatchResults(const std::string& file, std::istream& batch);
  ~BatchResults();
  BatchResults(const BatchResults&) = delete;
  BatchResults& operator=(const BatchResults&) = delete;

  /// Results the file held at the start.
  std::size_t resumed() const { return resumed_; }
  /// Takes the result line (with its newline) of input line `index`. A failure to write is kept for `wait`.
  void put(std::size_t index, std::string line);
  /// Returns when fewer than `most` of the `given` requests are unanswered. Throws WorkError if writing
  /// failed.
  void wait(std::size_t given, std::size_t most);
  /// Results put so far.
  std::size_t results();

 private:
  void open(const std::string& file);
  void resume(const std::string& file, std::istream& batch);

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::size_t, std::string> waiting_;
  std::size_t resumed_ = 0;
  std::size_t next_ = 0;
  std::size_t results_ = 0;
  int failed_ = 0;
  std::string name_;
  std::FILE* file_ = nullptr;
};

}  // namespace thalweg::app
