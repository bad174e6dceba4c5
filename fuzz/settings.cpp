// Configuration files: whatever the bytes, parsing returns settings or throws UsageError.
#include "app/settings.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    for (const auto& setting :
         thalweg::app::parse_settings({reinterpret_cast<const char*>(data), size}, "input.toml")) {
      if (!setting.array && setting.values.size() != 1) std::abort();
    }
  } catch (const thalweg::UsageError&) {
  }
  return 0;
}
