// Ids of the added tokens that prompts and answers of DeepSeek-V4.1 are built from.
#pragma once

#include <optional>

#include "text/tokenizer.hpp"

namespace thalweg::text {

/// Added tokens by role. A tokenizer made for the chat format has all of the first group; smaller
/// vocabularies may lack the optional ones.
struct SpecialTokens {
  TokenId bos;              ///< <｜begin▁of▁sentence｜>: starts every prompt
  TokenId eos;              ///< <｜end▁of▁sentence｜>: ends an assistant message
  TokenId pad;              ///< <｜▁pad▁｜>
  TokenId system;           ///< <｜System｜>
  TokenId user;             ///< <｜User｜>
  TokenId assistant;        ///< <｜Assistant｜>
  TokenId think;            ///< <think>
  TokenId end_think;        ///< </think>
  TokenId dsml;             ///< ｜DSML｜: the middle of every tool markup tag
  TokenId image;            ///< <｜deepseek_image｜>: image placeholder
  TokenId latest_reminder;  ///< <｜latest_reminder｜>

  std::optional<TokenId> action, query, authority, domain, title,
      read_url;                                         ///< quick tasks: <｜action｜>, ...
  std::optional<TokenId> fim_hole, fim_begin, fim_end;  ///< fill in the middle
};

/// Looks all of them up. Throws InputError naming the first required spelling that `tokenizer` lacks.
SpecialTokens find_special_tokens(const Tokenizer& tokenizer);

}  // namespace thalweg::text
