// Tokenizer files and texts from outside. A file either is refused with InputError or makes a tokenizer; with
// any tokenizer, text comes back from its ids, and a stream of ids gives the text of the whole.
#include "text/tokenizer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "app/model_option.hpp"
#include "base/error.hpp"
#include "text/detokenizer.hpp"
#include "text/engram_vocabulary.hpp"
#include "text/special_tokens.hpp"
#include "text/utf8.hpp"

namespace {

using thalweg::text::TokenId;
using thalweg::text::Tokenizer;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_text(const Tokenizer& tokenizer, std::string_view text) {
  const bool valid = thalweg::text::find_ill_formed_utf8(text) == text.size();
  try {
    require(tokenizer.decode(tokenizer.encode_plain(text)) == text);
    require(tokenizer.decode(tokenizer.encode(text)) == text);
    require(valid);
  } catch (const thalweg::InputError&) {
    require(!valid);
  }
}

void check_ids(const Tokenizer& tokenizer, std::string_view bytes) {
  std::vector<TokenId> ids;
  for (; bytes.size() >= sizeof(TokenId); bytes.remove_prefix(sizeof(TokenId))) {
    TokenId id;
    std::memcpy(&id, bytes.data(), sizeof id);
    // Half of them inside the vocabulary, the others anywhere.
    ids.push_back(id % 2 == 0 ? static_cast<TokenId>(static_cast<std::uint32_t>(id) / 2 %
                                                     static_cast<std::uint32_t>(tokenizer.vocab_size()))
                              : id);
  }
  thalweg::text::Detokenizer stream(tokenizer);
  std::string text;
  for (const TokenId id : ids) text += stream.push(id);
  if (!stream.pending().empty()) text += "\uFFFD";
  require(text == tokenizer.decode(ids));
}

void check_file(std::string_view json) {
  try {
    const Tokenizer tokenizer = Tokenizer::parse(json, "input");
    require(thalweg::text::engram_vocabulary(tokenizer).size() ==
            static_cast<std::size_t>(tokenizer.vocab_size()));
    for (TokenId id = -1; id <= tokenizer.vocab_size(); ++id) tokenizer.token_bytes(id);
    tokenizer.encode("abc ab\n12");
    thalweg::text::find_special_tokens(tokenizer);
  } catch (const thalweg::InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tokenizer bundled = Tokenizer::load(thalweg::app::model_directory("") / "tokenizer.json");
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'T') {
    check_text(bundled, input);
  } else if (data[0] == 'I') {
    check_ids(bundled, input);
  } else {
    check_file(input);
  }
  return 0;
}
