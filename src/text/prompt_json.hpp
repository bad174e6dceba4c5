// JSON as it stands in prompts: the way Python's json.dumps(value, ensure_ascii=False) writes it, which is
// what the model was trained on.
#pragma once

#include <string>

#include "base/json.hpp"

namespace thalweg::text {

/// Appends `value` with ", " and ": " as separators, members in their order, non-ASCII text as it is, and
/// only `"`,
/// `\` and characters below U+0020 escaped. Integers in -2^63 .. 2^64-1 keep their digits; every other
/// number,
/// `-0` too, goes through a double and is written by append_prompt_number().
///
/// `value` must come from parse_json() (or hold no signed zero made in code: that is how "-0" is told from
/// "0"). Linear in the size of the output.
void append_prompt_json(std::string& out, const Json& value);

std::string prompt_json(const Json& value);

/// Appends a finite double as Python's repr() writes it: the shortest digits that give the number back, as
/// `1.0`, `0.0001` or `1000000000000000.0` for exponents in [-4, 16), else as `1e-07`, `2.5e+16`.
void append_prompt_number(std::string& out, double value);

}  // namespace thalweg::text
