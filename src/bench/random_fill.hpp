// Random contents for device memory, made on the device. Never zeros: zeros run faster than data does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace thalweg::bench {

/// Bytes uniform in [low, high]; those whose lower seven bits are all set (NaN of E4M3) become 0 if `e4m3`.
void fill_bytes(void* target, std::size_t count, int low, int high, bool e4m3, std::uint32_t seed);

/// bf16 values uniform in (-size, size).
void fill_bf16(std::uint16_t* target, std::size_t count, float size, std::uint32_t seed);

/// Floats uniform in (low, high).
void fill_float(float* target, std::size_t count, float low, float high, std::uint32_t seed);

}  // namespace thalweg::bench
