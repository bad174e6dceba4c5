// Files of step-cost curves: whatever the bytes, reading returns curves that StepCost takes or throws
// InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "engine/speculation/step_curve_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace thalweg::engine;
  StepCurves curves;
  try {
    curves = parse_step_curves({reinterpret_cast<const char*>(data), size}, "input");
  } catch (const thalweg::InputError&) {
    return 0;
  }
  for (const auto& [key, curve] : curves) StepCost cost(curve);
  parse_step_curves(to_text(curves), "again");
  return 0;
}
