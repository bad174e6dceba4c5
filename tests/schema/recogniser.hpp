// Which texts a grammar has, by xgrammar's matcher, which knows nothing of schemas here.
#pragma once

#include <xgrammar/xgrammar.h>

#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::testing {

class Recogniser {
 public:
  explicit Recogniser(const std::string& ebnf) : compiled_(compiler().CompileGrammar(ebnf)) {}

  bool accepts(const std::string& text) const {
    xgrammar::GrammarMatcher matcher(compiled_);
    for (const char c : text) {
      if (!matcher.AcceptToken(static_cast<unsigned char>(c))) return false;
    }
    return matcher.IsCompleted();
  }

  const xgrammar::CompiledGrammar& compiled() const { return compiled_; }

 private:
  // A vocabulary of the 256 bytes and an end.
  static xgrammar::GrammarCompiler& compiler() {
    static xgrammar::GrammarCompiler instance = [] {
      std::vector<std::string> bytes;
      for (int i = 0; i < 256; ++i) bytes.emplace_back(1, static_cast<char>(i));
      bytes.emplace_back("</s>");
      return xgrammar::GrammarCompiler(
          xgrammar::TokenizerInfo(bytes, xgrammar::VocabType::RAW, 257, std::vector<std::int32_t>{256}), 1,
          false);
    }();
    return instance;
  }

  xgrammar::CompiledGrammar compiled_;
};

/// A text of a grammar, byte by byte.
class ByteWalk {
 public:
  explicit ByteWalk(const Recogniser& grammar) : matcher_(grammar.compiled()) {}

  /// The bytes that may come next.
  std::vector<unsigned char> allowed() {
    std::vector<std::int32_t> mask(9, -1);
    std::int64_t shape = 9;
    DLTensor tensor{};
    tensor.data = mask.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 1;
    tensor.dtype = xgrammar::GetBitmaskDLType();
    tensor.shape = &shape;
    matcher_.FillNextTokenBitmask(&tensor);
    std::vector<unsigned char> bytes;
    for (unsigned byte = 0; byte < 256; ++byte) {
      if ((static_cast<std::uint32_t>(mask[byte / 32]) >> (byte % 32)) % 2 == 1)
        bytes.push_back(static_cast<unsigned char>(byte));
    }
    return bytes;
  }
  void read(char byte) { matcher_.AcceptToken(static_cast<unsigned char>(byte)); }
  bool complete() const { return matcher_.IsCompleted(); }

 private:
  xgrammar::GrammarMatcher matcher_;
};

}  // namespace thalweg::testing
