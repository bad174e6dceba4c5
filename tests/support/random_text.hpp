// Random UTF-8 for property tests, dense in what makes tokenizers err.
#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "text/utf8.hpp"

namespace thalweg::testing {

/// A text of blanks, digits, letters, marks, signs, kana, added tokens and arbitrary characters.
inline rc::Gen<std::string> random_text() {
  const auto character = rc::gen::map(rc::gen::oneOf(rc::gen::inRange<std::uint32_t>(0x20, 0x7F),
                                                     rc::gen::inRange<std::uint32_t>(0x3040, 0x3100),
                                                     rc::gen::inRange<std::uint32_t>(0x80, 0x600),
                                                     rc::gen::inRange<std::uint32_t>(0xE000, 0x110000),
                                                     rc::gen::inRange<std::uint32_t>(0x0, 0xD800)),
                                      [](std::uint32_t code_point) {
                                        std::string s;
                                        text::append_utf8(s, code_point);
                                        return s;
                                      });
  const auto word = rc::gen::elementOf(std::vector<std::string>{
      " ",        "  ",         "\n",       "\r\n",   "\t",     "1",    "234",  "hello",          "The",
      "'t",       "://",        "...",      "\u3000", "\u0301", "東京", "カー", "🧑\u200d🚀", "<think>",
      "</think>", "<｜User｜>", "｜DSML｜", "<｜",    "｜>"});
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::oneOf(character, word)),
                      [](const std::vector<std::string>& parts) {
                        std::string joined;
                        for (const std::string& part : parts) joined += part;
                        return joined;
                      });
}

}  // namespace thalweg::testing
