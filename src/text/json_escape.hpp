// JSON string escaping as prompts and argument deltas need it.
#pragma once

#include <string>
#include <string_view>

namespace thalweg::text {

/// Appends `text` escaped for the inside of a JSON string, as Python's json.dumps(x, ensure_ascii=False)
/// does:
/// `"`, `\` and control characters below 0x20 only (`\n \r \t \b \f`, else `\u00xx`); everything else as it
/// is, so 0x7f and U+2028 stay raw. Escaping is by byte: a text may be escaped piece by piece. The result is
/// valid JSON if `text` is valid UTF-8.
void append_json_escaped(std::string& out, std::string_view text);

/// `text` as a whole JSON string, quotes included.
std::string json_quoted(std::string_view text);

}  // namespace thalweg::text
