// Compiles constraints away from the engine's thread.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>

#include "grammar/compiled_grammar.hpp"
#include "grammar/constraint.hpp"
#include "grammar/limits.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::grammar {

/// Owns one thread, on which constraints are compiled in order, and keeps what was compiled: the least
/// recently used rules leave when they take more than `cache_bytes`. The vocabulary is prepared with the
/// first constraint. Any thread may call it.
class Compiler {
 public:
  using Done = std::function<void(std::shared_ptr<const CompiledGrammar>, std::exception_ptr)>;

  /// `tokenizer` must outlive it and its grammars. `vocab_size`: width of the model's logits, at least the
  /// tokenizer's.
  Compiler(const text::Tokenizer& tokenizer, std::int32_t vocab_size, std::int32_t eos_token,
           std::size_t cache_bytes = GrammarLimits::cache_bytes);
  /// What is waiting ends with WorkError.
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// Throws InputError naming the field for what can be seen to be wrong without compiling.
  void check(const Constraint& constraint) const;

  /// Calls `done` on the compiler's thread: with a grammar, or with InputError naming the field that is
  /// refused (also for what takes longer than GrammarLimits::compile_time). `done` must not throw.
  /// Throws as `check` does, and WorkError if too many wait.
  void compile(Constraint constraint, Done done);
  /// The same for callers that wait.
  std::future<std::shared_ptr<const CompiledGrammar>> compile(Constraint constraint);

  struct Statistics {
    std::uint64_t compiled = 0;
    std::uint64_t reused = 0;
    std::uint64_t refused = 0;
    double seconds = 0;  ///< compiling
    std::size_t cached_bytes = 0;
  };
  Statistics statistics() const;

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace thalweg::grammar
