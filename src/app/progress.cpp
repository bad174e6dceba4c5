#include "app/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace thalweg::app {
namespace {

constexpr double terminal_interval = 0.1;  // seconds between two lines
constexpr double plain_interval = 10;
constexpr double worth_a_summary = 1;  // seconds

}  // namespace

ProgressOutput ProgressOutput::standard_error() {
  return {.file = stderr, .terminal = ::isatty(STDERR_FILENO) == 1, .now = [] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
          }};
}

Progress::Progress(std::string task, std::string unit, std::optional<std::uint64_t> total,
                   ProgressOutput output)
    : task_(std::move(task)),
      unit_(std::move(unit)),
      total_(total),
      output_(std::move(output)),
      begin_(output_.now()),
      shown_(begin_) {}

Progress::~Progress() {
  erase_line();
}

void Progress::advance(std::uint64_t units) {
  done_ += units;
  const double now = output_.now();
  if (now - shown_ < (output_.terminal ? terminal_interval : plain_interval)) return;
  shown_ = now;
  erase_line();
  fmt::print(output_.file, "{}: {}{}", task_, state(now - begin_), output_.terminal ? "" : "\n");
  line_stands_ = output_.terminal;
  std::fflush(output_.file);
}

void Progress::finish() {
  const double seconds = output_.now() - begin_;
  erase_line();
  if (seconds < worth_a_summary) return;
  fmt::print(output_.file, "{}: {} in {}, {}\n", task_, amount(), duration_text(seconds), rate(seconds));
}

std::string Progress::number(std::uint64_t units) const {
  return unit_ == "bytes" ? fmt::format("{:.1f}", static_cast<double>(units) / 1e6)
                          : fmt::format("{}", units);
}

std::string Progress::amount() const {
  const std::string of_total = total_ ? " of " + number(*total_) : "";
  return number(done_) + of_total + (unit_ == "bytes" ? " MB" : " " + unit_);
}

std::string Progress::rate(double seconds) const {
  const double per_second = static_cast<double>(done_) / seconds;
  if (unit_ == "bytes") return fmt::format("{:.1f} MB/s", per_second / 1e6);
  return fmt::format("{:.{}f} {}/s", per_second, per_second < 10 ? 2 : 0, unit_);
}

std::string Progress::state(double seconds) const {
  std::string text = amount();
  if (seconds <= 0) return text;
  text += ", " + rate(seconds);
  if (total_ && done_ > 0 && done_ <= *total_) {
    const double left = seconds / static_cast<double>(done_) * static_cast<double>(*total_ - done_);
    text += fmt::format(", {} left", duration_text(left));
  }
  return text;
}

void Progress::erase_line() {
  if (!line_stands_) return;
  std::fputs("\r\x1b[K", output_.file);  // carriage return, erase to the end of the line
  std::fflush(output_.file);
  line_stands_ = false;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace thalweg::app
