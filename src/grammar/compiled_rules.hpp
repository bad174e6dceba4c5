// Inside the room: the vocabulary and rules as xgrammar knows them.
#pragma once

#include <xgrammar/xgrammar.h>

#include <string>

#include "grammar/compiled_grammar.hpp"
#include "text/tokenizer.hpp"

namespace thalweg::grammar {

struct CompiledGrammar::Rules {
  xgrammar::CompiledGrammar compiled;
  const text::Tokenizer* tokenizer;
  std::int32_t eos_token;
  std::int32_t vocab_size;
};

}  // namespace thalweg::grammar
