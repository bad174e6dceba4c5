// What a grammar costs: compiling it, and its mask for a token.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grammar/constraint.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::bench {

struct GrammarFigures {
  std::string name;
  double compile_ms = 0;
  std::size_t bytes = 0;  ///< compiled
  std::int64_t tokens = 0;
  double mask_us = 0;      ///< mean of a mask
  double worst_us = 0;     ///< the slowest mask
  double accept_us = 0;    ///< mean of accepting a token
  double rollback_us = 0;  ///< of taking five tokens back and accepting them again
};

/// Compiles every constraint once and walks through `walks` random outputs of at most `tokens` tokens each,
/// every token drawn evenly from those that the mask allows. Times are those of one thread. Throws InputError
/// for a constraint that is refused.
std::vector<GrammarFigures> run_grammar_bench(const text::Tokenizer& tokenizer, std::int32_t eos_token,
                                              int walks, int tokens);

}  // namespace thalweg::bench
