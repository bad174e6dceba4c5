// JSON from outside: whatever the bytes, parsing returns a value or throws InputError, and a value that was
// read can be written and read again.
#include "base/json.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const thalweg::JsonLimits limits{.depth = std::size_t{data[0]} % 64 + 1, .unique_keys = data[0] >= 128};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const std::string written = thalweg::to_text(thalweg::parse_json(text, "input", limits));
    if (thalweg::to_text(thalweg::parse_json(written, "output", limits)) != written) std::abort();
  } catch (const thalweg::InputError& error) {
    if (error.subject() != "input") std::abort();  // what we wrote ourselves must be readable
  }
  return 0;
}
