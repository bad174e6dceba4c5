// Typed errors. Every failure a user can cause carries what it is about, what was expected and what was
// found.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace thalweg {

/// Whose fault it is; the value is the exit code of the command line.
enum class Fault : int { work = 1, usage = 2, input = 3 };

/// Root of all errors thrown on purpose. `what()` is one line, fit to be shown to a user as it is.
class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& message) : std::runtime_error(message), fault_(fault) {}
  Fault fault() const noexcept { return fault_; }

 private:
  Fault fault_;
};

/// The work failed although command line and input were right (out of memory, a write error, a device lost).
class WorkError : public Error {
 public:
  explicit WorkError(const std::string& message) : Error(Fault::work, message) {}
};

/// The command line or the configuration is wrong; the message names the option.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(Fault::usage, message) {}
};

/// An input (file, field, tensor, request) is wrong. `subject` names it, e.g. "model/config.json:
/// text_config.head_dim".
class InputError : public Error {
 public:
  InputError(std::string subject, const std::string& problem)
      : Error(Fault::input, subject + ": " + problem), subject_(std::move(subject)) {}
  InputError(std::string subject, std::string_view expected, std::string_view found)
      : Error(Fault::input, fmt::format("{}: expected {}, found {}", subject, expected, found)),
        subject_(std::move(subject)) {}
  const std::string& subject() const noexcept { return subject_; }

 private:
  std::string subject_;
};

}  // namespace thalweg
