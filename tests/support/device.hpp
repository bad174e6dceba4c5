// The device that a test program is about. The same test sources are built for each.
#pragma once

#include "backend/backend.hpp"

namespace thalweg::backend::testing {

#ifdef THALWEG_TEST_CUDA
inline constexpr Device kDevice = Device::cuda;
#else
inline constexpr Device kDevice = Device::cpu;
#endif

}  // namespace thalweg::backend::testing
