// Tells people on stderr how far long work has come.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

namespace thalweg::app {

/// Where and how a Progress reports. The defaults are what commands use.
struct ProgressOutput {
  std::FILE* file = stderr;
  bool terminal = false;        ///< rewrite one line in place; false: whole lines, seldom
  std::function<double()> now;  ///< seconds of a clock that never goes back
  static ProgressOutput standard_error();
};

/// Counts finished units of one task and shows amount, rate and remaining time: on a terminal one line that
/// is rewritten up to ten times a second and removed at the end, elsewhere a line every ten seconds. Work
/// that took a second or more leaves one summary line. Not thread-safe: one thread advances it.
class Progress {
 public:
  /// `task` is what is going on ("generating"), `unit` what is counted ("requests"; "bytes" are shown as MB),
  /// `total` how many there will be, if that is known.
  Progress(std::string task, std::string unit, std::optional<std::uint64_t> total,
           ProgressOutput output = ProgressOutput::standard_error());
  /// Removes what stands on the terminal; no summary is written for work that did not `finish`.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t units = 1);
  /// The work is done: writes the summary. Call it once, after the last `advance`.
  void finish();

 private:
  std::string number(std::uint64_t units) const;
  std::string amount() const;
  std::string rate(double seconds) const;
  std::string state(double seconds) const;
  void erase_line();

  std::string task_;
  std::string unit_;
  std::optional<std::uint64_t> total_;
  ProgressOutput output_;
  double begin_;
  double shown_;  // when a line was written last
  std::uint64_t done_ = 0;
  bool line_stands_ = false;  // the terminal's line holds our text
};

/// "12 s", "3 min 20 s", "2 h 5 min".
std::string duration_text(double seconds);

}  // namespace thalweg::app
