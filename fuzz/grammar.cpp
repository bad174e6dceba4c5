// The first byte chooses: a regular expression, or a grammar. What passes the check becomes rules of a
// bounded size, or is refused as an input error; what is compiled accepts nothing that its mask does not
// allow.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "grammar/compiler.hpp"
#include "grammar/rules.hpp"

using namespace thalweg;

namespace {

/// That of the bundled checkpoint: ids from 3 on are bytes and merges.
const text::Tokenizer& tokenizer() {
  static const text::Tokenizer bundled = text::Tokenizer::load(THALWEG_FUZZ_TOKENIZER);
  return bundled;
}

constexpr std::int32_t kEos = 1;

void walk(grammar::Matcher matcher, const std::uint8_t* data, std::size_t size) {
  std::vector<std::uint32_t> mask(matcher.mask_words());
  for (std::size_t i = 0; i < std::min<std::size_t>(size, 16); ++i) {
    const bool masked = matcher.fill_mask(mask);
    const std::int32_t token = 3 + data[i];
    const bool allowed = !masked || (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0;
    if (matcher.accept(token) != allowed) std::abort();
    if (!allowed) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static grammar::Compiler compiler(tokenizer(), tokenizer().vocab_size(), kEos);
  grammar::Constraint constraint;
  constraint.kind = data[0] % 2 == 0 ? grammar::Constraint::Kind::regex : grammar::Constraint::Kind::ebnf;
  constraint.text.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    walk(grammar::Matcher(compiler.compile(constraint).get()), data, size);
  } catch (const InputError&) {
    // refused by name
  }
  return 0;
}
