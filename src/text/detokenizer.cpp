#include "text/detokenizer.hpp"

#include "text/utf8.hpp"

namespace thalweg::text {

std::string Detokenizer::push(TokenId id) {
  pending_ += tokenizer_->token_bytes(id);
  std::string_view rest = pending_;
  std::string piece;
  while (!rest.empty()) {
    const Utf8Unit unit = read_utf8(rest);
    if (unit.state == Utf8State::unfinished) break;
    append_utf8(piece, unit.code_point);
    rest.remove_prefix(unit.length);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return piece;
}

}  // namespace thalweg::text
