#include "text/special_tokens.hpp"

#include <string_view>

#include "base/error.hpp"

namespace thalweg::text {

SpecialTokens find_special_tokens(const Tokenizer& tokenizer) {
  const auto required = [&](std::string_view spelling) {
    if (const auto id = tokenizer.added_token(spelling)) return *id;
    throw InputError("tokenizer.json: added_tokens", fmt::format("an entry \"{}\"", spelling), "none");
  };
  const auto optional = [&](std::string_view spelling) { return tokenizer.added_token(spelling); };
  return {
      .bos = required("<｜begin▁of▁sentence｜>"),
      .eos = required("<｜end▁of▁sentence｜>"),
      .pad = required("<｜▁pad▁｜>"),
      .system = required("<｜System｜>"),
      .user = required("<｜User｜>"),
      .assistant = required("<｜Assistant｜>"),
      .think = required("<think>"),
      .end_think = required("</think>"),
      .dsml = required("｜DSML｜"),
      .image = required("<｜deepseek_image｜>"),
      .latest_reminder = required("<｜latest_reminder｜>"),
      .action = optional("<｜action｜>"),
      .query = optional("<｜query｜>"),
      .authority = optional("<｜authority｜>"),
      .domain = optional("<｜domain｜>"),
      .title = optional("<｜title｜>"),
      .read_url = optional("<｜read_url｜>"),
      .fim_hole = optional("<｜fim▁hole｜>"),
      .fim_begin = optional("<｜fim▁begin｜>"),
      .fim_end = optional("<｜fim▁end｜>"),
  };
}

}  // namespace thalweg::text
