// Random weights and activations in device memory for kernel cases.
#pragma once

#include <cstdint>

#include "backend/cuda/device.hpp"
#include "backend/cuda/linear.hpp"
#include "backend/cuda/pack.hpp"

namespace thalweg::bench {

/// `copies` packed matrices of one shape, one after the other, with random contents.
cuda::DeviceArray<std::uint8_t> random_weights(const cuda::PackedShape& shape, int copies);

/// An operand of values that lie in E4M3's reach.
cuda::DeviceArray<std::uint16_t> random_operand(int rows, int columns);

/// How many copies of `bytes` do not fit the L2 cache together, with room to spare.
int rotating_copies(double bytes);

}  // namespace thalweg::bench
