// How large a constraint may be: checked before anything is compiled.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace thalweg::grammar {

struct GrammarLimits {
  static constexpr std::size_t text_bytes = 64 << 10;  ///< of an expression, a grammar or all choices
  static constexpr std::size_t depth = 64;             ///< of nested groups
  static constexpr std::int64_t expanded = 20'000;     ///< characters with every repetition written out
  static constexpr std::int64_t repetitions = 20'000;  ///< a count in a grammar
  static constexpr std::size_t choices = 1000;
  static constexpr std::size_t tools = 128;
  static constexpr std::chrono::milliseconds compile_time{800};  ///< of its thread, computing
  static constexpr std::chrono::milliseconds mask_time{250};     ///< of one token, likewise
  static constexpr std::size_t waiting = 256;                    ///< compilations in the queue
  static constexpr std::size_t cache_bytes = 256 << 20;          ///< of compiled grammars kept
};

}  // namespace thalweg::grammar
