// What is put into every source of xgrammar: a time bound for compilations and masks, and its log. Included
// by the compiler's command line (cmake/xgrammar.cmake), so that the library never sees ours and needs no
// linking back.
#pragma once

#include <time.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace thalweg::grammar {

/// What this thread has computed: other work on the machine must not make a grammar too large.
inline std::chrono::nanoseconds computed_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

/// The compilation, or the mask being filled, on this thread.
struct CompileWatch {
  std::chrono::nanoseconds deadline;  ///< in `computed_time`
  unsigned calls = 0;
  std::string warning;  ///< the first thing that xgrammar would have ignored
};
inline thread_local CompileWatch* compile_watch = nullptr;

/// Sets the watch of this thread for a scope.
class Watched {
 public:
  explicit Watched(CompileWatch& watch) : outer_(compile_watch) { compile_watch = &watch; }
  ~Watched() { compile_watch = outer_; }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  CompileWatch* outer_;
};

/// A compilation, or a mask, took longer than its deadline.
class CompileTimeout : public std::runtime_error {
 public:
  CompileTimeout() : std::runtime_error("the time bound is over") {}
};

/// xgrammar refuses something; the text is its own, without the place in its sources.
class GrammarRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Called from the loops of compilations and masks. Throws CompileTimeout.
inline void check_compile_deadline() {
  CompileWatch* watch = compile_watch;
  if (watch == nullptr || ++watch->calls % 64 != 0) return;
  if (computed_time() > watch->deadline) throw CompileTimeout();
}

}  // namespace thalweg::grammar

// The names under which xgrammar looks for a log of its user's.
namespace xgrammar {

[[noreturn]] inline void LogFatalImpl(const std::string& /*file*/, int /*line*/, const std::string& message) {
  throw thalweg::grammar::GrammarRefused(message);
}

inline void LogMessageImpl(const std::string& /*file*/, int /*line*/, int level, const std::string& message) {
  thalweg::grammar::CompileWatch* watch = thalweg::grammar::compile_watch;
  constexpr int kWarning = 2;
  if (watch != nullptr && level >= kWarning && watch->warning.empty()) watch->warning = message;
}

}  // namespace xgrammar
