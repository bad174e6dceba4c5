#include "bench/bench_weights.hpp"

#include <algorithm>
#include <cmath>

#include "bench/random_fill.hpp"

namespace thalweg::bench {

using cuda::DeviceArray;
using cuda::WeightFormat;

DeviceArray<std::uint8_t> random_weights(const cuda::PackedShape& shape, int copies) {
  const std::size_t values = static_cast<std::size_t>(shape.rows) * shape.columns;
  const bool bf16 = shape.format == WeightFormat::bf16;
  const bool fp8 = shape.format == WeightFormat::fp8;
  DeviceArray<std::uint8_t> codes(bf16 ? 2 * values : fp8 ? values : values / 2);
  DeviceArray<std::uint8_t> scales(values / 32);
  DeviceArray<int> flag(std::size_t{1});
  DeviceArray<std::uint8_t> packed(shape.bytes() * copies);
  for (int copy = 0; copy < copies; ++copy) {
    const auto seed = static_cast<std::uint32_t>(3 * copy);
    if (bf16) {
      fill_bf16(reinterpret_cast<std::uint16_t*>(codes.data()), values, 0.02f, seed);
    } else {
      fill_bytes(codes.data(), codes.size(), 0, 255, fp8, seed);
      fill_bytes(scales.data(), scales.size(), fp8 ? 110 : 118, fp8 ? 113 : 121, false, seed + 1);
    }
    cuda::pack(shape, {codes.data(), scales.data()}, packed.data() + copy * shape.bytes(), flag.data(),
               nullptr);
  }
  cuda::check(cudaDeviceSynchronize(), "random weights");
  return packed;
}

DeviceArray<std::uint16_t> random_operand(int rows, int columns) {
  DeviceArray<std::uint16_t> operand(cuda::operand_values(rows, columns));
  fill_bf16(operand.data(), operand.size(), 4.0f, 99);
  return operand;
}

int rotating_copies(double bytes) {
  return std::clamp(static_cast<int>(std::ceil(320e6 / bytes)), 1, 64);
}

}  // namespace thalweg::bench
