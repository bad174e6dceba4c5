// config.json: any text is either refused or a configuration whose caches and tensors can be laid out.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "checkpoint/checkpoint.hpp"
#include "model/cache_layout.hpp"

namespace {

void expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thalweg;
  try {
    const auto config =
        checkpoint::parse_config_text({reinterpret_cast<const char*>(data), size}, "config.json");
    const model::PageLayout page = model::page_layout(config);
    const model::SlotLayout slot = model::slot_layout(config, model::default_backtracking(config));
    expect(page.stride >= page.used_bytes && slot.stride >= slot.used_bytes);
    // The table grows with the number of experts, which one digit of input multiplies: keep the runs short.
    const auto experts = std::int64_t{config.layers} * config.routed_experts +
                         std::int64_t{config.draft.layers} * config.draft.experts;
    if (experts > 1000) return 0;
    for (const checkpoint::TensorInfo& info : checkpoint::expected_tensors(config)) expect(info.bytes > 0);
  } catch (const InputError&) {
  }
  return 0;
}
